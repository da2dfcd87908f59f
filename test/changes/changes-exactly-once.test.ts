import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import type { MarketSlug } from '../../src/catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../../src/catalog/scopes.ts';
import { randomOf } from '../conversion/support.ts';
import { CORRECTING, loadText, points } from '../ingest/support/loading.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { writeMinimalData } from '../support/database/minimal-data.ts';
import { NO_LIMITS } from '../support/http/no-limits.ts';
import { keyFor } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { fetchChanges, type Source } from '../support/prices/feed-client.ts';
import { changesOf, pastOf, type WireChange, withoutSeq } from '../support/prices/feed-oracle.ts';
import { publisherOn } from '../support/prices/random-commits.ts';
import { startService } from '../support/process/programs.ts';
import { recordFigures } from '../support/run/faults.ts';
import { makeFolder } from '../support/run/folders.ts';

type Test = Pick<typeof t, 'teardown'>;

const READER = fileURLToPath(new URL('./feed-reader-process.ts', import.meta.url));
const SEED = 20_261_122;
const random = randomOf(SEED);
const upTo = (most: number): number => Math.floor(random() * (most + 1));

/** A real server process that is killed now and then, always reached at the same port. */
async function mortalServer(test: Test, { url }: TestDatabase) {
  let target = 0;
  let running = startService(test, { ...NO_LIMITS, DATABASE_URL: url });
  const arrive = async (): Promise<void> => {
    const text = await running.until('stderr', /listening at http:\/\/\S+?:\d+/);
    target = Number(/listening at http:\/\/\S+?:(\d+)/.exec(text)?.[1]);
  };
  await arrive();
  const door = createServer((near) => {
    const far = connect({ port: target, host: '127.0.0.1' });
    near.pipe(far).pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(door, 'listening');
  test.teardown(() => door.close());
  const { port } = door.address() as AddressInfo;
  return {
    port,
    /** Kills it without a word and starts another instead. */
    dieAndRise: async (): Promise<void> => {
      running.child.kill('SIGKILL');
      await running.ended;
      running = startService(test, { ...NO_LIMITS, DATABASE_URL: url });
      await arrive();
    },
  };
}

interface FeedReader {
  /** Every change that it has worked off, in its order. */
  readonly worked: WireChange[];
  /** Reads until it has come to the position. */
  until(end: () => string | null): Promise<void>;
}

/** A reader that sometimes loses its unprocessed changes and continues on another server. */
function interruptedReader(ports: readonly number[], key: string, query: string): FeedReader {
  const worked: WireChange[] = [];
  const isThere = (position: string | null, end: string | null): boolean => {
    const numberOf = (text: string) => Number(text.split('.')[1]);
    return position !== null && end !== null && numberOf(position) >= numberOf(end);
  };
  return {
    worked,
    until: async (end) => {
      let position: string | null = null;
      while (!isThere(position, end())) {
        const source: Source = { port: ports[upTo(ports.length - 1)] ?? 0, key };
        const from = position === null ? '' : `&after=${position}`;
        try {
          const parameters = `limit=${1 + upTo(30)}${query}${from}`;
          const { status, changes, next, text } = await fetchChanges(source, parameters);
          if (status === 429 || status === 503) {
            // A killed reader still occupies this credential, or the server has just started.
            await pause(20);
            continue;
          }
          if (status !== 200 && status !== 204) throw new Error(text);
          const part = random() < 0.4 ? upTo(changes.length) : changes.length;
          worked.push(...changes.slice(0, part));
          position = part === changes.length ? next : (worked.at(-1)?.seq ?? null);
        } catch (error) {
          // Only broken connections are expected after a kill.
          if (!(error instanceof TypeError)) throw error;
          await pause(20);
        }
      }
    },
  };
}

/** A reader process that is killed at random; its file holds the processed changes. */
async function mortalReader(test: Test, addresses: readonly string[], key: string) {
  const folder = await makeFolder();
  test.teardown(folder.remove);
  const file = join(folder.path, 'changes.ndjson');
  const begin = (): ChildProcess => {
    const child = spawn(process.execPath, [READER, file, ...addresses], {
      env: { ...process.env, SERVICE_KEY: key },
      stdio: 'inherit',
    });
    test.teardown(() => child.kill('SIGKILL'));
    return child;
  };
  let child = begin();
  return {
    dieAndRise: async (): Promise<void> => {
      child.kill('SIGKILL');
      await once(child, 'exit');
      child = begin();
    },
    worked: async (): Promise<WireChange[]> => {
      const text = await readFile(file, 'utf8').catch(() => '');
      return changesOf(text.slice(0, text.lastIndexOf('\n') + 1));
    },
  };
}

/** Random concurrent transactions and loads, until it is stopped. */
async function publish(test: Test, database: TestDatabase, isOver: () => boolean): Promise<void> {
  const publisher = await publisherOn(database.pool, SEED);
  const writer = async () => {
    while (!isOver()) {
      await publisher.transact();
      await pause(upTo(60));
    }
  };
  const loader = async (code: string) => {
    for (let turn = 0; !isOver(); turn += 1) {
      const rows = Array.from({ length: 1 + upTo(9) }, (_, index) => {
        const date = `20${10 + index}-0${1 + upTo(8)}-1${upTo(9)}`;
        return `${code},${date},,${turn}.${upTo(999)},,2025-01-01T00:00:00Z`;
      });
      await loadText(test, database.client, 'csv', points(...rows), CORRECTING);
      await pause(upTo(100));
    }
  };
  await Promise.all([writer(), writer(), writer(), loader('T-1'), loader('T-3')]);
}

const KILLS = 5;

t.test(
  `readers that stop anywhere, of servers that die anywhen, see every change once, seed ${SEED}`,
  async (t) => {
    const database = await testDatabase(t);
    await writeMinimalData(database.pool);
    const servers = [await mortalServer(t, database), await mortalServer(t, database)] as const;
    const ports = servers.map(({ port }) => port);
    const all = await keyFor(database, [ALL_MARKETS]);
    const survivor = await mortalReader(
      t,
      ports.map((port) => `http://127.0.0.1:${port}/v3/changes`),
      all,
    );
    const keyOfOne = (slug: MarketSlug) => keyFor(database, [scopeOf(slug)]);
    const readers: [slug: MarketSlug | null, reader: FeedReader][] = [
      [null, interruptedReader(ports, all, '')],
      [null, interruptedReader(ports, all, '&wait=1')],
      ['nickel', interruptedReader(ports, await keyOfOne('nickel'), '&wait=1')],
      ['copper', interruptedReader(ports, await keyOfOne('copper'), '')],
      ['copper', interruptedReader(ports, all, '&market=copper')],
    ];
    let isOver = false;
    let end: string | null = null;
    const reading = readers.map(([, reader]) => reader.until(() => end));
    const publishing = publish(t, database, () => isOver);
    for (let turn = 0; turn < KILLS; turn += 1) {
      await pause(upTo(400));
      await Promise.all([servers[turn % 2 === 0 ? 0 : 1].dieAndRise(), survivor.dieAndRise()]);
      await pause(upTo(200));
      await survivor.dieAndRise();
    }
    await until('enough was published', async () => (await pastOf(database.pool)).length > 300);
    isOver = true;
    await publishing;
    const past = await pastOf(database.pool);
    recordFigures('F41', { changes: past.length, 'kills of servers and readers': 3 * KILLS });
    end = (await fetchChanges({ port: ports[0] ?? 0, key: all }, 'limit=5000&market=cobalt')).next;
    await Promise.all(reading);
    await until('the reader has come to the end', async () => {
      return (await survivor.worked()).length >= past.length;
    });
    for (const [slug, { worked }] of [
      ...readers,
      [null, { worked: await survivor.worked() }] as const,
    ]) {
      const expected = past.filter(({ market }) => slug === null || market === slug);
      t.strictSame(worked.map(withoutSeq), expected, `${slug ?? 'every market'}`);
      const numbers = worked.map(({ seq }) => Number(seq.split('.')[1]));
      t.ok(
        numbers.every((each, index) => each > (numbers[index - 1] ?? 0)),
        'each has a later position than the one before, however old its day',
      );
    }
  },
);
