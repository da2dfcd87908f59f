/**
 * Compares how two checkouts load: the same random commands on equal databases must lead to equal
 * exit codes, tables, change feeds and places of errors.
 *
 *     node bench/loads-oracle.ts --before FOLDER --after FOLDER [--sequences 500] [--seed N]
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Checkout } from './loads-oracle/checkout.ts';
import {
  type Difference,
  feedDifference,
  isSameWording,
  outcomeDifference,
  stateDifference,
} from './loads-oracle/compare.ts';
import type { CommandOutcome } from './loads-oracle/runner.ts';
import { prepare, Side, siblingOf } from './loads-oracle/side.ts';
import { type Step, sequenceOf } from './loads-oracle/steps.ts';
import { log } from './log.ts';

const HELP = `node bench/loads-oracle.ts --before FOLDER --after FOLDER [options]

Runs random sequences of load, correction, withdraw, undo and re-load by two checkouts on equal
databases. Exit codes, tables, change feeds, JSON reports and the places (file, line, column) of
errors must be equal, apart from identities, times and wording. Exit code 1: they differ.

  --before FOLDER   the checkout that is right; it migrates and seeds, and reads both feeds, unless
                    the migrations of the two differ: then each does so for itself
  --after FOLDER    the checkout under test
  --sequences N     how many sequences (500)
  --from K          number of the first sequence (1): with --sequences 1, that one alone
  --seed N          another seed gives other sequences (1)
  --only WORD       only sequences in which a command has this word: table, fed, undo, worldbank …
  --each            print every difference, not only the first
  --stop            end after the first sequence that differs
  -h, --help        this text

TEST_DATABASE_URL names a server to use; else the embedded PostgreSQL of --before is started. Two
databases are made for each sequence and dropped after it. The files of the first sequence that
differs stay in a folder, which is printed with the commands.
`;

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    after: { type: 'string' },
    sequences: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    each: { type: 'boolean', default: false },
    stop: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** Settings without durability; the data are dropped after the run. */
const THROWAWAY = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

/** Uses the server of TEST_DATABASE_URL, otherwise starts the embedded one of the checkout. */
async function startServer(checkout: string, folder: string) {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) return { url: given, release: async () => {} };
  const file = join(checkout, 'src', 'db', 'embedded', 'embedded.ts');
  const { openEmbedded } = await import(pathToFileURL(file).href);
  return openEmbedded(join(folder, 'data'), { settings: THROWAWAY }) as Promise<{
    readonly url: string;
    release(): Promise<void>;
  }>;
}

type Pair<T> = readonly [T, T];

/** Runs a function for both sides in parallel. */
const both = async <T, U>([before, after]: Pair<T>, work: (side: T) => Promise<U>) =>
  (await Promise.all([work(before), work(after)])) as unknown as Pair<U>;

/** Number of commands by first words and exit code. */
const tally = new Map<string, number>();

function count(step: Step, { exitCode }: CommandOutcome): void {
  const [first = '', second = ''] = step.words;
  const what = `${first === 'withdraw' ? first : `${first} ${second}`}: ${exitCode}`;
  tally.set(what, (tally.get(what) ?? 0) + 1);
}

interface FoundDifference extends Difference {
  /** Index of the command in its sequence, from 0. */
  readonly at: number;
}

let otherWording = 0;

/**
 * True if a signal requested the end: the current sequence is finished, later ones are not started.
 */
let isStopped = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    isStopped = true;
  });
}

function noteWording(step: Step, [before, after]: Pair<CommandOutcome>): void {
  if (isSameWording(before, after)) return;
  otherWording += 1;
  if (otherWording > 1) return;
  log(`other wording of prices ${step.words.join(' ')}, which is no difference:`);
  log(`before: ${before.stdout}\nafter: ${after.stdout}`);
}

/** Compares tables and feeds of both sides; null if they are equal. */
async function compareData(sides: Pair<Side>, isOneSchema: boolean): Promise<Difference | null> {
  const [before, after] = await both(sides, (side) => side.state());
  const difference = stateDifference(before, after);
  if (difference) return difference;
  // A shared reader also finds faults that both readers have in common, but knows only one schema.
  const feeds = await both(sides, ({ checkout, url }) =>
    (isOneSchema ? sides[0].checkout : checkout).feed(url),
  );
  return feedDifference(feeds, await both(sides, (side) => side.names()));
}

/** Runs the steps of a sequence on both sides; null if all results are equal. */
async function takeSteps(
  sides: Pair<Side>,
  steps: readonly Step[],
  { isStepwise, isOneSchema }: { readonly isStepwise: boolean; readonly isOneSchema: boolean },
): Promise<FoundDifference | null> {
  for (const [at, step] of steps.entries()) {
    const outcomes = await both(sides, (side) => side.take(step));
    if (!isStepwise) count(step, outcomes[0]);
    const names = await both(sides, (side) => side.names());
    const difference = outcomeDifference(outcomes, names);
    if (difference) return { ...difference, at };
    noteWording(step, outcomes);
    const later = isStepwise ? await compareData(sides, isOneSchema) : null;
    if (later) return { ...later, at };
  }
  const last = await compareData(sides, isOneSchema);
  return last && { ...last, at: steps.length - 1 };
}

/** State shared by all sequences. */
interface Bench {
  readonly checkouts: Pair<Checkout>;
  readonly templates: Pair<string>;
  readonly admin: pg.Client;
  readonly url: string;
  readonly folder: string;
  readonly began: string;
  /** Prefix of all database names. */
  readonly prefix: string;
}

/** Runs a sequence on two new databases, which are dropped afterwards. */
async function runSequence(
  { checkouts, templates, admin, url, folder, began, prefix }: Bench,
  steps: readonly Step[],
  name: string,
  isStepwise: boolean,
): Promise<FoundDifference | null> {
  const databases = ['before', 'after'].map((each) => `${prefix}_${each}`);
  const opened: Side[] = [];
  try {
    for (const [index, database] of databases.entries()) {
      await admin.query(`create database ${database} template ${templates[index]}`);
      const files = join(folder, name, index === 0 ? 'before' : 'after');
      const checkout = checkouts[index] as Checkout;
      opened.push(await Side.open(checkout, siblingOf(url, database), files, began));
    }
    const isOneSchema = templates[0] === templates[1];
    return await takeSteps(opened as unknown as Pair<Side>, steps, { isStepwise, isOneSchema });
  } finally {
    for (const side of opened) await side.close();
    for (const each of databases) {
      await admin.query(`drop database if exists ${each} with (force)`);
    }
  }
}

const quoted = (word: string): string => (/^[\w./:-]+$/.test(word) ? word : `'${word}'`);

/** Prints a difference and the commands that lead to it. */
function printFound(
  number: number,
  steps: readonly Step[],
  found: FoundDifference,
  folder: string,
): void {
  const { what, at, before, after } = found;
  const shown = (value: unknown): string => JSON.stringify(value, null, 1) ?? 'nothing';
  const lines = [
    `\nSequence ${number} differs after command ${at + 1}: ${what}`,
    `before: ${shown(before)}`,
    `after:  ${shown(after)}`,
    '\nIts commands; <batch -N> is the N-th before the newest batch, <applied -N> the N-th before',
    'the newest that was applied:',
    ...steps.slice(0, at + 1).map(({ words }) => `  prices ${words.map(quoted).join(' ')}`),
    `Its files: ${join(folder, `sequence-${number}`, 'after')}`,
    `Once more:`,
    `  node bench/loads-oracle.ts --before ${values.before} --after ${values.after} \\`,
    `    --seed ${values.seed} --from ${number} --sequences 1\n`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** Runs all sequences. @returns the numbers of different and of all sequences */
async function runAll(bench: Bench): Promise<{ differing: number; done: number }> {
  const first = Number(values.from);
  let [differing, done] = [0, 0];
  for (let number = first; number < first + Number(values.sequences); number += 1) {
    if (isStopped) break;
    const steps = sequenceOf(values.seed, number);
    const { only } = values;
    if (only !== undefined && !steps.some(({ words }) => words.includes(only))) continue;
    const name = `sequence-${number}`;
    let found = await runSequence(bench, steps, name, false);
    done += 1;
    if (found === null) await rm(join(bench.folder, name), { recursive: true });
    else {
      differing += 1;
      // Data are compared at the end of a sequence; a second run finds the command that differs.
      const isShown = values.each || differing === 1;
      if (isShown) found = (await runSequence(bench, steps, name, true)) ?? found;
      if (isShown) printFound(number, steps, found, bench.folder);
      else log(`sequence ${number} differs after command ${found.at + 1}: ${found.what}`);
      isStopped ||= values.stop;
    }
    if (done % 25 === 0) log(`${done} sequences, ${differing} of them differ`);
  }
  return { differing, done };
}

/** Names of the migrations of a checkout. */
const migrationsOf = async (folder: string): Promise<string> =>
  (await readdir(join(folder, 'migrations'))).sort().join();

/** Creates the template databases of the sequences: one, or one for each side. */
async function makeTemplates(bench: Omit<Bench, 'templates' | 'began'>): Promise<Pair<string>> {
  const { checkouts, admin, url, folder, prefix } = bench;
  const [before, after] = await both(checkouts, (each) => migrationsOf(each.folder));
  const names = [`${prefix}_template`, `${prefix}_other`] as const;
  for (const [index, name] of names.entries()) {
    if (index === 1 && before === after) return [names[0], names[0]];
    await admin.query(`create database ${name}`);
    await prepare(checkouts[index] as Checkout, siblingOf(url, name), join(folder, name));
  }
  log('the migrations differ: each side has made its own database');
  return names;
}

async function main(folder: string): Promise<boolean> {
  const paths = [resolve(values.before ?? ''), resolve(values.after ?? '')] as const;
  const server = await startServer(paths[0], folder);
  const checkouts = [new Checkout(paths[0]), new Checkout(paths[1])] as const;
  const admin = new pg.Client({ connectionString: server.url });
  const prefix = `oracle_${process.pid}`;
  await admin.connect();
  try {
    const shared = { checkouts, admin, url: server.url, folder, prefix };
    const { rows } = await admin.query(
      `select to_char(clock_timestamp() at time zone 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    );
    const templates = await makeTemplates(shared);
    const { differing, done } = await runAll({ ...shared, templates, began: rows[0].now });
    for (const [what, times] of [...tally].sort()) log(`${what} × ${times}`);
    if (otherWording > 0) log(`${otherWording} commands say the same in other words`);
    const sum = `${done} sequences of seed ${values.seed}: ${differing} differ`;
    process.stdout.write(`${sum}\n`);
    return differing === 0;
  } finally {
    for (const each of checkouts) each.stop();
    for (const name of ['before', 'after', 'other', 'template']) {
      await admin.query(`drop database if exists ${prefix}_${name} with (force)`).catch(() => {});
    }
    await admin.end();
    await server.release();
  }
}

if (values.help || !values.before || !values.after) {
  process.stdout.write(HELP);
  process.exitCode = values.help ? 0 : 2;
} else {
  const folder = await mkdtemp(join(tmpdir(), 'loads-oracle-'));
  const isEqual = await main(folder);
  if (isEqual) await rm(folder, { recursive: true });
  process.exitCode = isEqual ? 0 : 1;
}
