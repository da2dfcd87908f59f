import { readFile, writeFile } from 'node:fs/promises';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BESIDE_OTHERS, FAULTS } from '../../faults/catalogue.ts';
import { tableOf } from './fault-table.ts';
import type { AddedFigures, FaultResult } from './faults.ts';
import { makeFolder } from './folders.ts';
import type { Group } from './groups.ts';
import type { Length } from './length.ts';
import type { Tally } from './tally.ts';

const PAGE = fileURLToPath(new URL('../../../docs/reliability.md', import.meta.url));

/** Marks around the table in the page. */
const BEGIN = '<!-- measured by: npm run test:faults -- --write -->\n';
const END = '<!-- end of what was measured -->\n';

/** Parallel jobs of files that measure no times. Some of them mostly wait. */
const BESIDE_JOBS = 4;

/** A run of the fault tests by themselves. */
export interface FaultRun {
  /** The arguments that are for tap. */
  readonly rest: string[];
  /** Additional options of tap. */
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly length: Length;
  readonly writes: boolean;
  /** Begin of the run, by `performance.now()`. */
  readonly begunAt: number;
  /** The file in which tests record results. */
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
    options: [`--timeout=${length === 'long' ? 7_200 : 1_800}`],
    env: { FAULTS_RESULTS: results, FAULTS_LENGTH: length },
    length,
    writes: args.includes('--write'),
    begunAt: performance.now(),
    results,
    remove: folder.remove,
  };
}

/** Test files with the number of parallel jobs. */
export interface Part {
  readonly files: readonly string[];
  /** Further test files, one process for each group. */
  readonly groups?: readonly Group[];
  readonly jobs: number;
  /** True if processes share a compile cache, which shortens their start. */
  readonly isCompiledOnce?: boolean;
}

/**
 * Splits a run of the faults: files that measure times run one at a time, so that no other test
 * distorts them; then files that count, in parallel.
 */
export function partsOf(own: readonly string[]): readonly Part[] {
  const elsewhere = Object.values(FAULTS).flatMap(({ files = [] }) => files);
  const beside = own.filter((path) => BESIDE_OTHERS.includes(path));
  return [
    { files: own.filter((path) => !beside.includes(path)), jobs: 1 },
    {
      files: [...new Set([...beside, ...elsewhere])].sort(),
      jobs: BESIDE_JOBS,
      isCompiledOnce: true,
    },
  ];
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

/** The duration of a run in words. */
export function tookText(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  return `took ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`;
}

/** Prints the table of a run; with `--write`, replaces the table of the page. */
export async function reportFaults(
  run: FaultRun,
  database: string,
  tallies: ReadonlyMap<string, Tally>,
): Promise<void> {
  const text = await readFile(run.results, 'utf8').catch(() => '');
  const noted = text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as FaultResult | AddedFigures);
  const took = tookText(performance.now() - run.begunAt);
  const head = `Measured on ${machine(database)}; length: ${run.length}; ${took}.`;
  const table = `${head}\n\n${tableOf(FAULTS, noted, tallies)}`;
  console.log(`\n${table}\nThe fault run ${took}.`);
  if (!run.writes) return;
  const page = await readFile(PAGE, 'utf8');
  const [before = '', after = ''] = [page.split(BEGIN)[0], page.split(END)[1]];
  await writeFile(PAGE, `${before}${BEGIN}\n${table}\n${END}${after}`);
}
