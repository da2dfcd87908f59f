/**
 * Compares this checkout with another one, usually that before a change: both load the same file
 * and answer the same requests, alternately.
 *
 *     node bench/compare-checkouts.ts CHECKOUT [--points 2000000] [--rounds 5] [--ms 600]
 *         [--loads 5] [--only W3days,W4]
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openEmbedded } from '../src/db/embedded/embedded.ts';
import { run } from './child.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { type Contender, startService } from './contenders.ts';
import { pointsOf, writeDescriptions, writeSeries } from './dataset.ts';
import type { HttpRequest } from './http-client.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';
import { type Sample, sample, samplesOf } from './measure.ts';
import { serviceRequest, WORKLOADS, type Workload } from './workloads.ts';

const HERE = fileURLToPath(new URL('..', import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    points: { type: 'string', default: '2000000' },
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '600' },
    loads: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
  },
});
const [before] = positionals;
if (!before || !existsSync(join(before, 'package.json'))) {
  process.stderr.write(
    'usage: node bench/compare-checkouts.ts CHECKOUT [--points] [--rounds] [--ms] [--loads] ' +
      '[--only]\n',
  );
  process.exit(2);
}
const points = Number(values.points);

/** The two checkouts, by their name in the table. */
const SIDES = [
  ['before', resolve(before)],
  ['after', HERE],
] as const;
type SideName = (typeof SIDES)[number][0];

/** The entry file of the commands; older checkouts have it elsewhere. */
const commandsOf = (root: string): string => {
  const files = ['src/cli/main.ts', 'src/commands/main.ts'].map((file) => join(root, file));
  return files.find(existsSync) ?? '';
};

/** Requests outside the workloads: a small answer and a rejection. */
const SMALL: readonly (readonly [string, (key: string) => HttpRequest])[] = [
  [
    'GET /v3/me',
    (key) => ({ method: 'GET', path: '/v3/me', headers: { 'x-api-key': key }, body: '' }),
  ],
  [
    'refused POST',
    (key) => ({
      method: 'POST',
      path: '/v3/prices/nickel',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: '{"filters":{"colour":["red"]}}',
      status: 400,
    }),
  ],
];

interface Measured {
  readonly name: string;
  readonly connections: number;
  readonly samples: readonly Sample[];
}

/** Samples one workload or small request, alternating between both sides. */
async function inTurns(
  clusters: Readonly<Record<SideName, Cluster>>,
  contenders: readonly Contender[],
  workload: Workload,
  connections: number,
  ms: number,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  const least = workload.name.startsWith('W4') ? 2 : 6;
  for (const contender of contenders) {
    const side = contender.name.split(' ')[0] as SideName;
    const length = { ms, least, limitMs: 120_000 };
    const taken = await sample(clusters[side], contender, workload, connections, length);
    if (taken) samples.push(taken);
  }
  return samples;
}

const workloadOf = (name: string): Workload => ({
  ...(WORKLOADS[0] as Workload),
  name,
  title: name,
});

async function measureRequests(clusters: Readonly<Record<SideName, Cluster>>): Promise<Measured[]> {
  const contenders: Contender[] = [];
  for (const [side, root] of SIDES) {
    const cluster = clusters[side];
    const ask = (workload: Workload): HttpRequest =>
      SMALL.find(([name]) => name === workload.name)?.[1](cluster.key) ??
      serviceRequest(workload, cluster.key, cluster.past);
    const onlyWithPrices = (workload: Workload): HttpRequest | null =>
      SMALL.some(([name]) => name === workload.name) ? null : ask(workload);
    const book = await startService(cluster, {}, root);
    await waitUntilIdle(cluster, book.pid);
    contenders.push({ name: side, served: book, ask });
    const plain = await startService(cluster, { PRICE_BOOK_BYTES: '0' }, root);
    contenders.push({ name: `${side} SQL`, served: plain, ask: onlyWithPrices });
  }
  const only = values.only.split(',').filter(Boolean);
  const all = [...WORKLOADS, ...SMALL.map(([name]) => workloadOf(name))].filter(
    ({ name }) => only.length === 0 || only.includes(name),
  );
  const measured = new Map<string, { name: string; connections: number; samples: Sample[] }>();
  try {
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      log(`round ${round} of ${values.rounds}`);
      for (const workload of all) {
        for (const connections of [1, 16]) {
          // Alternating the order gives no side the advantage of always being first.
          const order = round % 2 ? contenders : contenders.toReversed();
          const isLong = /^(W[345]|latest)/.test(workload.name);
          if (connections > 1 && isLong) continue;
          const taken = await inTurns(clusters, order, workload, connections, Number(values.ms));
          const key = `${workload.name} ${connections}`;
          const found = measured.get(key) ?? { name: workload.name, connections, samples: [] };
          found.samples.push(...taken);
          measured.set(key, found);
        }
      }
    }
  } finally {
    for (const { served } of contenders) await served.stop();
  }
  return [...measured.values()];
}

/** Rows per second of loads of the same file into empty databases, alternately. */
async function measureLoads(): Promise<Record<SideName, number[]>> {
  const rates: Record<SideName, number[]> = { before: [], after: [] };
  const folder = await mkdtemp(join(tmpdir(), 'prices-before-'));
  try {
    const series = join(folder, 'series.csv');
    const descriptions = await writeDescriptions(folder, points);
    await writeSeries(series, points, () => {});
    for (let turn = 1; turn <= Number(values.loads); turn += 1) {
      for (const [side, root] of turn % 2 ? SIDES : SIDES.toReversed()) {
        const data = join(folder, `${side}-${turn}`);
        const embedded = await openEmbedded(data, { settings: { max_wal_size: '16GB' } });
        const command = (...args: string[]) =>
          run(process.execPath, [commandsOf(root), ...args], { DATABASE_URL: embedded.url });
        await command('db', 'migrate');
        await command('db', 'seed', '--reference');
        await command('load', 'ndjson', ...descriptions);
        const began = performance.now();
        await command('load', 'csv', series, '--json');
        rates[side].push((1000 * pointsOf(points)) / (performance.now() - began));
        await embedded.release();
        await rm(data, { recursive: true, force: true });
        log(`load ${turn}, ${side}: ${Math.round(rates[side].at(-1) ?? 0)} rows/s`);
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return rates;
}

const costs = (samples: readonly Sample[], who: string, measured: Measured): number[] =>
  samplesOf(samples, who, measured.name, measured.connections).map(
    ({ nodeMs, pgMs }) => nodeMs + pgMs,
  );
const number = (value: number): string => String(Number(value.toPrecision(3)));
/** The spread of a side: the relative distance of its second best from its best time. */
const spreadOf = (times: readonly number[]): number => {
  const [best = Number.NaN, second = Number.NaN] = [...times].sort((one, other) => one - other);
  return second / best - 1;
};

function printRequests(measured: readonly Measured[]): void {
  const lines = measured.flatMap((each) =>
    ['', ' SQL'].flatMap((kind) => {
      const before = costs(each.samples, `before${kind}`, each);
      const after = costs(each.samples, `after${kind}`, each);
      if (before.length === 0 || after.length === 0) return [];
      const ratio = Math.min(...after) / Math.min(...before);
      const spread = Math.max(spreadOf(before), spreadOf(after));
      const cells = [
        `${each.name}${kind}`,
        String(each.connections),
        number(Math.min(...before)),
        number(Math.min(...after)),
        ratio.toFixed(3),
        `${(100 * spread).toFixed(1)} %`,
        ratio - 1 > 0.05 + spread ? 'worse' : '',
      ];
      return [`| ${cells.join(' | ')} |`];
    }),
  );
  const head = '| | connections | before, CPU ms | after, CPU ms | after ÷ before | spread | |';
  process.stdout.write(`${[head, '|---|--:|--:|--:|--:|--:|---|', ...lines].join('\n')}\n\n`);
}

if (values.loads !== '0') {
  const rates = await measureLoads();
  const [was, is] = [Math.max(...rates.before), Math.max(...rates.after)];
  process.stdout.write(
    `Load, rows a second, best of ${values.loads}: before ${Math.round(was)}, after ` +
      `${Math.round(is)}: ${(is / was).toFixed(3)} (at least 0.97)\n\n`,
  );
}
const clusters = {
  before: await startCluster(points, undefined, commandsOf(SIDES[0][1])),
  after: await startCluster(points, undefined, commandsOf(SIDES[1][1])),
};
try {
  printRequests(await measureRequests(clusters));
} finally {
  await clusters.before.stop();
  await clusters.after.stop();
}
