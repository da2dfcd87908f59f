/**
 * The benchmark: starts an own PostgreSQL, loads the data set through the product's loader, and
 * measures the service against its limits and its peers, alternately in one run.
 *
 *     npm run bench -- [--points 7827000] [--rounds 5] [--ms 1500] [--growth 0] [--keep FOLDER]
 *         [--quick] [--write] [--only formats|explorer|loads|memory|downloads]
 */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Bar, barChart } from './chart.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { type Contender, codedSizes, startContenders, startService } from './contenders.ts';
import { memoryOf } from './cpu.ts';
import { measureExplorer } from './explorer.ts';
import { type Downloads, duringDownloads } from './extras.ts';
import { type FormCost, measureFormats } from './formats.ts';
import { sizeCurve, type TableCost, tableCosts } from './growth.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';
import { measureManyConnections } from './many-connections.ts';
import { costOf, measure, samplesOf } from './measure.ts';
import { type HeldMemory, measureMemory } from './memory.ts';
import { bestDownloads, bestOf, measurePerRound, type PerRound } from './per-round.ts';
import {
  downloadRatios,
  explorerRatios,
  formatRatios,
  loadRatios,
  memoryRatio,
  type Ratio,
  ratiosOf,
} from './ratios.ts';
import { partReport, reportOf } from './report.ts';
import type { Results } from './results.ts';

const { values } = parseArgs({
  options: {
    points: { type: 'string', default: '7827000' },
    rounds: { type: 'string', default: '5' },
    ms: { type: 'string', default: '1500' },
    growth: { type: 'string', default: '0' },
    keep: { type: 'string' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    only: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** A table of 250 prices of the market and as many others, and short bursts. */
const QUICK = { points: '1300000', rounds: '1', ms: '150' };
if (values.quick) Object.assign(values, QUICK);

const HELP = `npm run bench -- [options]

  --points N    points of the table (7827000)
  --rounds N    measurement rounds, alternating between contenders (5)
  --ms N        length of one burst of requests (1500)
  --growth N    points of a second, bigger table, for the growth curve (0: none)
  --keep FOLDER where that table stays, and is taken from if it is there
  --quick       a first table in less than 5 minutes: a small table, 1 round of 150 ms
  --write       write docs/benchmarks/{report.md,results.json,*.svg}
  --only PART   formats: a million points in each format; explorer: ten prices of ten years in a
                browser (Chromium on the path); loads: the table, and 65,000 values that are
                loaded and corrected; memory: that of slow readers; downloads: small answers
                beside two largest ones. Ends with 1 if a target is missed
  -h, --help    this text
`;

/** The machine, its load and the versions of every run. */
function surroundingsOf(cluster: Cluster): string[] {
  const [cpu] = cpus();
  return [
    new Date().toISOString().slice(0, 10),
    `${cpus().length} cores of ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    `load average at the end ${loadavg()[0]?.toFixed(1)}`,
    `Node ${process.versions.node}, PostgreSQL ${cluster.version}`,
  ];
}

function machineOf(cluster: Cluster): string {
  const version = (name: string): string => {
    const file = new URL(`./node_modules/${name}/package.json`, import.meta.url);
    return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`;
  };
  return [
    ...surroundingsOf(cluster),
    version('postgraphile'),
    version('@platformatic/db'),
    `${cluster.points.toLocaleString('en')} points`,
    `${values.rounds} rounds of ${values.ms} ms`,
  ].join('; ');
}

const served = (contenders: readonly Contender[], name: string) => {
  const found = contenders.find((each) => each.name === name);
  if (!found) throw new Error(`there is no contender ${name}`);
  return found.served;
};

/** Runs all measurements of the first table. */
async function measureAll(cluster: Cluster): Promise<Results> {
  const { contenders, bodies } = await startContenders(cluster);
  try {
    const connections = [1, 16, 64];
    const rounds = {
      rounds: Number(values.rounds),
      connections,
      ms: Number(values.ms),
      isQuick: values.quick,
    };
    const service = served(contenders, 'service');
    const plain = served(contenders, 'service, SQL');
    const beside: PerRound[] = [];
    const samples = await measure(cluster, contenders, rounds, async () => {
      beside.push(await measurePerRound(cluster, service, plain));
    });
    const sizes = values.quick ? [] : await sizeCurve(cluster, service, plain);
    const crowds = values.quick
      ? { samples: [], failures: [] }
      : await measureManyConnections(cluster, contenders, connections);
    return {
      machine: machineOf(cluster),
      ...bestOf(beside),
      samples: [...samples, ...crowds.samples],
      coded: codedSizes(bodies),
      failures: crowds.failures,
      rowsPerSecond: cluster.rowsPerSecond,
      copiedPerSecond: cluster.copiedPerSecond,
      firstLoadSeconds: cluster.firstLoadSeconds,
      correctionSeconds: cluster.correctionSeconds,
      peakBytes: memoryOf(service.pid).peak,
      sizes,
      tables: [],
      formats: [],
    };
  } finally {
    for (const contender of contenders) await contender.served.stop();
  }
}

async function grow(first: Cluster): Promise<TableCost[]> {
  const points = Number(values.growth);
  if (values.quick) return [];
  if (points === 0) return tableCosts([first]);
  log(`a second table of ${points} points`);
  const second = await startCluster(points, values.keep);
  try {
    return await tableCosts([first, second]);
  } finally {
    await second.stop();
  }
}

function charts(results: Results): [string, string][] {
  const { samples } = results;
  const names = [...new Set(samples.map(({ contender }) => contender))];
  const ratios = ratiosOf(results)
    .map(({ what, share }): Bar => ({ label: what, value: share }))
    .filter(({ value }) => value > 0);
  const sizes = results.sizes.flatMap(({ points, bookMs, sqlMs }): Bar[] => [
    { label: `service, ${points.toLocaleString('en')} points`, value: bookMs },
    { label: `from SQL, ${points.toLocaleString('en')} points`, value: sqlMs },
  ]);
  const whole: [string, string][] = [
    ['ratios.svg', barChart('Targets: 1 and below is met', 'share of the limit', ratios, 380)],
    ['growth.svg', barChart('CPU by the size of the answer', 'milliseconds', sizes, 190)],
  ];
  const each = ['W1', 'W2', 'W3', 'W4'].map((workload): [string, string] => {
    const bars = names
      .map((label): Bar => ({ label, value: costOf(samplesOf(samples, label, workload, 1)) }))
      .filter(({ value }) => Number.isFinite(value));
    const title = `${workload}: CPU of one request, process and PostgreSQL`;
    return [`${workload}.svg`, barChart(title, 'milliseconds', bars)];
  });
  return [...each, ...whole];
}

async function write(results: Results, report: string): Promise<void> {
  const folder = new URL('../docs/benchmarks/', import.meta.url);
  await mkdir(folder, { recursive: true });
  await writeFile(new URL('report.md', folder), `${report}\n`);
  await writeFile(new URL('results.json', folder), `${JSON.stringify(results)}\n`);
  for (const [name, svg] of charts(results)) await writeFile(new URL(name, folder), svg);
  log(`written to ${fileURLToPath(folder)}`);
}

interface PartResults {
  readonly ratios: readonly Ratio[];
  readonly forms: readonly FormCost[];
  readonly held?: readonly HeldMemory[];
}

/** A part that `--only` names. */
interface BenchmarkPart {
  /** Points of the table; 0 for the smallest table. */
  readonly points: number;
  measure(cluster: Cluster): Promise<PartResults>;
}

const PARTS: Readonly<Record<string, BenchmarkPart>> = {
  formats: {
    points: 0,
    measure: async (cluster) => {
      const forms = await measureFormats(cluster, Number(values.rounds));
      return { ratios: formatRatios(forms), forms };
    },
  },
  explorer: {
    points: 0,
    measure: async (cluster) => {
      const times = await measureExplorer(cluster, Number(values.rounds));
      return { ratios: explorerRatios(times), forms: [] };
    },
  },
  loads: {
    points: Number(values.points),
    measure: async (cluster) => ({ ratios: loadRatios(cluster), forms: [] }),
  },
  downloads: {
    points: 0,
    measure: async (cluster) => {
      const service = await startService(cluster);
      try {
        await waitUntilIdle(cluster, service.pid);
        const rounds: Downloads[] = [];
        for (let round = 0; round < Number(values.rounds); round += 1) {
          rounds.push(await duringDownloads(service, cluster.key));
        }
        return { ratios: downloadRatios(bestDownloads(rounds)), forms: [] };
      } finally {
        await service.stop();
      }
    },
  },
  memory: {
    points: 0,
    measure: async (cluster) => {
      const held = await measureMemory(cluster);
      return { ratios: [memoryRatio(held)], forms: [], held };
    },
  },
};

/** Measures one part. A missed target sets the exit code. */
async function runPart({ points, measure: measurePart }: BenchmarkPart): Promise<void> {
  const cluster = await startCluster(points, values.keep);
  try {
    const { ratios, forms, held } = await measurePart(cluster);
    const machine = [...surroundingsOf(cluster), `${values.rounds} rounds`].join('; ');
    process.stdout.write(`${partReport(machine, ratios, forms, held)}\n`);
    if (ratios.some(({ isMet }) => !isMet)) process.exitCode = 1;
  } finally {
    await cluster.stop();
  }
}

const part = values.only === undefined ? null : PARTS[values.only];
if (values.help) {
  process.stdout.write(HELP);
} else if (part === undefined) {
  process.stderr.write(`--only takes ${Object.keys(PARTS).join(' or ')}\n`);
  process.exitCode = 2;
} else if (part !== null) {
  await runPart(part);
} else {
  const cluster = await startCluster(Number(values.points));
  log(`loaded ${Math.round(cluster.rowsPerSecond).toLocaleString('en')} rows/s`);
  let results: Results;
  try {
    results = await measureAll(cluster);
    results = { ...results, tables: await grow(cluster) };
    // The formats come last: their prices make the first table bigger.
    const formats = values.quick ? [] : await measureFormats(cluster, Number(values.rounds));
    results = { ...results, formats };
  } finally {
    await cluster.stop();
  }
  const report = reportOf(results);
  process.stdout.write(`${report}\n`);
  if (values.write) await write(results, report);
}
