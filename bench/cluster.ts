import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { openEmbedded } from '../src/db/embedded/embedded.ts';
import { run } from './child.ts';
import { clusterPids } from './cpu.ts';
import {
  LATER_VALUES,
  laterRounds,
  pointsOf,
  writeDescriptions,
  writeLaterValues,
  writeSeries,
} from './dataset.ts';
import { log } from './log.ts';

const COMMANDS = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const PEERS_SQL = fileURLToPath(new URL('./peers.sql', import.meta.url));

/** Memory for a table of 10×; default durability. */
const SETTINGS = {
  shared_buffers: '4GB',
  max_wal_size: '16GB',
  checkpoint_timeout: '30min',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
};

/** The benchmark's own PostgreSQL, with the data set loaded by the product's commands. */
export interface Cluster {
  readonly url: string;
  readonly version: string;
  readonly points: number;
  /** Series rows per second through the loader with all its checks. */
  readonly rowsPerSecond: number;
  /** Rows per second of the same file by COPY into a table with only a primary key. */
  readonly copiedPerSecond: number;
  /** Least seconds of all rounds to load 65,000 values, and to correct all of them. */
  readonly firstLoadSeconds: number;
  readonly correctionSeconds: number;
  readonly key: string;
  /** An instant before the last revisions. */
  readonly past: string;
  /** Ids of some codes, for peers that select by id. */
  idsOf(codes: readonly string[]): Promise<readonly number[]>;
  /** True if another session is in a statement or a transaction. */
  isBusy(): Promise<boolean>;
  /** The current pids of the server and its backends. */
  pids(): number[];
  query(text: string, values?: readonly unknown[]): Promise<pg.QueryResult>;
  stop(): Promise<void>;
}

type RunCommand = (...args: string[]) => Promise<string>;

/** The speed of the loads of a run. */
export type Loads = Pick<
  Cluster,
  'rowsPerSecond' | 'copiedPerSecond' | 'firstLoadSeconds' | 'correctionSeconds'
>;

const secondsOf = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
};

/** Copies a file of series into a separate table with the key of the product's table. */
async function copy(url: string, file: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`create table copied (code text, date date, low numeric, mid numeric,
      high numeric, published_at timestamptz, primary key (code, date))`);
    const rows = client.query(copyFrom('copy copied from stdin (format csv, header)'));
    await pipeline(createReadStream(file), rows);
    await client.query('drop table copied');
  } finally {
    await client.end();
  }
}

/** Most rounds of 65,000 values. */
const LATER_ROUNDS_MAX = 5;

/**
 * Loads 65,000 values of other prices in each round, and then a correction of each of them. The
 * best of all rounds counts: after the load of the table PostgreSQL vacuums and writes checkpoints.
 */
async function loadAndCorrect(folder: string, command: RunCommand, points: number) {
  const [first, corrected] = ['later.csv', 'corrected.csv'].map((name) => join(folder, name)) as [
    string,
    string,
  ];
  const allowed = ['--allow-corrections', '--reason', 'benchmark'];
  const best = { firstLoadSeconds: Infinity, correctionSeconds: Infinity };
  for (let round = 0; round < Math.min(LATER_ROUNDS_MAX, laterRounds(points)); round += 1) {
    await writeLaterValues(first, points, round, 0);
    await writeLaterValues(corrected, points, round, 100);
    const loaded = await secondsOf(() => command('load', 'csv', first, '--json'));
    const again = await secondsOf(() => command('load', 'csv', corrected, '--json', ...allowed));
    log(`round ${round + 1}: loaded in ${loaded.toFixed(2)} s, corrected in ${again.toFixed(2)} s`);
    best.firstLoadSeconds = Math.min(best.firstLoadSeconds, loaded);
    best.correctionSeconds = Math.min(best.correctionSeconds, again);
  }
  return best;
}

/** Generates the data set and loads it. */
async function load(
  folder: string,
  command: RunCommand,
  url: string,
  points: number,
): Promise<Loads> {
  const series = join(folder, 'series.csv');
  const descriptions = await writeDescriptions(folder, points);
  await writeSeries(series, points, (done, all) => {
    if (done % 500 === 0) log(`generating: ${Math.round((100 * done) / all)} %`);
  });
  await command('load', 'ndjson', ...descriptions);
  log(`loading ${Math.round((await stat(series)).size / 2 ** 20)} MB of series through the loader`);
  const seconds = await secondsOf(() => command('load', 'csv', series, '--json'));
  const copied = await secondsOf(() => copy(url, series));
  await rm(series);
  log(`loading and correcting ${LATER_VALUES} values`);
  return {
    rowsPerSecond: pointsOf(points) / seconds,
    copiedPerSecond: pointsOf(points) / copied,
    ...(await loadAndCorrect(folder, command, points)),
  };
}

/** Loads daily rates of five currencies for conversions. */
const RATES = `
do $$ begin
  perform open_revision('rates of the benchmark');
  insert into fx_source (slug, name, base_currency_id)
    select 'ECB', 'European Central Bank', id from currency where iso = 'EUR'
    on conflict do nothing;
  insert into fx_rate (source, currency_id, date, rate)
    select 'ECB', c.id, day,
      trim_scale(round((1.1 + 0.1 * sin(extract(epoch from day) / 1e7) + c.id)::numeric, 4))
    from currency c, generate_series(date '2015-01-01', date '2024-12-31', interval '1 day') as day
    where c.iso in ('USD', 'CNY', 'JPY', 'GBP', 'KRW') on conflict do nothing;
end $$`;

const CORRECTION = `
do $$ begin
  perform open_revision('a correction of the benchmark');
  update series set mid = mid + 0.01 where date = '2024-03-14' and price_id =
    (select min(id) from price where market_id = (select id from market where slug = 'nickel'));
end $$`;

const BUSY = `select from pg_stat_activity where datname = current_database()
  and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid() limit 1`;

/** Facts about a finished table, stored beside it. */
interface Made extends Loads {
  readonly points: number;
  readonly key: string;
  readonly past: string;
}

type RunQuery = (text: string, values?: readonly unknown[]) => Promise<pg.QueryResult>;

/** Fills a migrated database. */
async function fill(
  folder: string,
  command: RunCommand,
  url: string,
  query: RunQuery,
  points: number,
): Promise<Made> {
  await command('db', 'seed', '--reference');
  const loads = await load(folder, command, url, points);
  await query(RATES);
  const past = new Date().toISOString();
  // A later revision makes the past of the market differ from its present.
  await query(CORRECTION);
  await query(readFileSync(PEERS_SQL, 'utf8'));
  await query('vacuum analyze');
  const made = await command('keys', 'create', '--name', 'bench', '--scope', 'prices:*', '--json');
  const { key } = JSON.parse(made) as { key: string };
  return { points: pointsOf(points), ...loads, key, past };
}

/** The table kept in this folder, if it is the requested one. */
function madeIn(folder: string, points: number): Made | null {
  const file = join(folder, 'made.json');
  if (!existsSync(file)) return null;
  const made = JSON.parse(readFileSync(file, 'utf8')) as Made;
  if (made.points !== pointsOf(points)) throw new Error(`${folder} has ${made.points} points`);
  return made;
}

/**
 * Starts a PostgreSQL and fills it.
 *
 * @param keep a folder that keeps the table for later runs
 * @param commands the file that runs the commands of the product, of this checkout or another
 */
export async function startCluster(
  points: number,
  keep?: string,
  commands: string = COMMANDS,
): Promise<Cluster> {
  if (keep) await mkdir(keep, { recursive: true });
  const folder = keep ?? (await mkdtemp(join(tmpdir(), 'prices-bench-')));
  const before = madeIn(folder, points);
  const embedded = await openEmbedded(join(folder, 'data'), { settings: SETTINGS });
  const pool = new pg.Pool({ connectionString: embedded.url, max: 2 });
  const query: RunQuery = (text, values = []) => pool.query(text, [...values]);
  const command: RunCommand = (...args) =>
    run(process.execPath, [commands, ...args], { DATABASE_URL: embedded.url });
  await command('db', 'migrate');
  const made = before ?? (await fill(folder, command, embedded.url, query, points));
  if (keep) await writeFile(join(folder, 'made.json'), JSON.stringify(made));
  const { rows } = await query(`select current_setting('server_version') as version,
    (select pid from pg_stat_activity where backend_type = 'checkpointer') as checkpointer`);
  const [{ version, checkpointer }] = rows as [{ version: string; checkpointer: number }];
  const status = readFileSync(`/proc/${checkpointer}/status`, 'utf8');
  const postmaster = Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]);
  return {
    url: embedded.url,
    version,
    ...made,
    idsOf: async (codes) => {
      const found = await query('select id from price where code = any($1) order by id', [codes]);
      return found.rows.map(({ id }) => id);
    },
    isBusy: async () => (await query(BUSY)).rows.length > 0,
    pids: () => clusterPids(postmaster),
    query,
    stop: async () => {
      await pool.end();
      await embedded.release();
      if (!keep) await rm(folder, { recursive: true, force: true });
    },
  };
}
