import { readFile, writeFile } from 'node:fs/promises';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FAULTS } from '../faults/catalogue.ts';
import { tableOf } from './fault-table.ts';
import type { Done, Length } from './faults.ts';
import { makeFolder } from './folders.ts';

const PAGE = fileURLToPath(new URL('../../docs/reliability.md', import.meta.url));

/** Where the page holds the table. */
const BEGIN = '<!-- measured by: npm run test:faults -- --write -->\n';
const END = '<!-- end of what was measured -->\n';

/** A run of the fault tests by themselves. */
export interface FaultRun {
  /** The arguments that are for tap. */
  readonly rest: string[];
  /** What tap is told beside them. */
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly length: Length;
  readonly writes: boolean;
  /** When it began, by `performance.now()`. */
  readonly begunAt: number;
  /** Where the tests note what they did. */
  readonly results: string;
  remove(): Promise<void>;
}

/** Reads `--faults`, `--long` and `--write`; null when faults are not asked for. */
export async function faultRun(args: readonly string[]): Promise<FaultRun | null> {
  if (!args.includes('--faults')) return null;
  const length = args.includes('--long') ? 'long' : 'full';
  const own = ['--faults', '--long', '--write'];
  const folder = await makeFolder();
  const results = join(folder.path, 'faults.ndjson');
  return {
    rest: args.filter((each) => !own.includes(each)),
    // One at a time: what is measured is the service, not the other tests.
    options: ['--jobs=1', `--timeout=${length === 'long' ? 7_200 : 1_800}`],
    env: { FAULTS_RESULTS: results, FAULTS_LENGTH: length },
    length,
    writes: args.includes('--write'),
    begunAt: performance.now(),
    results,
    remove: folder.remove,
  };
}

const machine = (database: string): string => {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  const { node } = process.versions;
  return (
    `${new Date().toISOString().slice(0, 10)}, ${all.length} × ${all[0]?.model.trim()}, ` +
    `${memory} GB, ${platform()} ${arch()}, Node ${node}, ${database}`
  );
};

/** How long a run was as a whole, in words. */
export function tookText(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  return `took ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`;
}

/** Prints the table of a run; with `--write` it becomes the one of the page. */
export async function tellFaults(run: FaultRun, database: string): Promise<void> {
  const text = await readFile(run.results, 'utf8').catch(() => '');
  const done = text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Done);
  const took = tookText(performance.now() - run.begunAt);
  const head = `Measured on ${machine(database)}; length: ${run.length}; ${took}.`;
  const table = `${head}\n\n${tableOf(FAULTS, done)}`;
  console.log(`\n${table}\nThe fault run ${took}.`);
  if (!run.writes) return;
  const page = await readFile(PAGE, 'utf8');
  const [before = '', after = ''] = [page.split(BEGIN)[0], page.split(END)[1]];
  await writeFile(PAGE, `${before}${BEGIN}\n${table}\n${END}${after}`);
}
