/**
 * Runs commands of one checkout in one process: `node runner.ts CHECKOUT`, started with Node of
 * that checkout. Each message of the parent is a task, and each answer carries its id.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A task for a checkout. */
export type Task =
  | {
      readonly kind: 'command';
      readonly id: number;
      /** Address of the database. */
      readonly url: string;
      /** Folder that the command runs in. */
      readonly folder: string;
      /** The words after `prices`. */
      readonly words: readonly string[];
    }
  | { readonly kind: 'feed'; readonly id: number; readonly url: string };

/** The result of a command. */
export interface CommandOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The answer to a task: an outcome, or the changes of a feed as JSON texts. */
export interface TaskAnswer {
  readonly id: number;
  readonly outcome?: CommandOutcome;
  readonly changes?: readonly string[];
  /** A failure of the runner itself. */
  readonly error?: string;
}

const CHECKOUT = process.argv[2] ?? '';
const moduleOf = (path: string): string => pathToFileURL(join(CHECKOUT, path)).href;

/** The file that `./prices` executes; in older checkouts, the one that `npm run prices` names. */
function entryOf(): string {
  const manifest = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8'));
  return moduleOf(/\S+\.ts$/.exec(manifest.scripts.prices)?.[0] ?? 'src/cli/main.ts');
}

const ENTRY = entryOf();

/** Collects all that is written to a stream until it is given back. */
function capture(stream: NodeJS.WriteStream): { text(): string; end(): void } {
  const { write } = stream;
  const parts: string[] = [];
  stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
    parts.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
    const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined;
    if (done) queueMicrotask(done);
    return true;
  }) as typeof stream.write;
  return {
    text: () => parts.join(''),
    end: () => {
      stream.write = write;
    },
  };
}

/**
 * Runs a command by importing the entry file anew: the query makes it another module, while the
 * modules that it imports stay loaded.
 */
async function run({ id, url, folder, words }: Extract<Task, { kind: 'command' }>) {
  process.chdir(folder);
  process.env['DATABASE_URL'] = url;
  process.argv = [process.argv[0] ?? '', 'main.ts', ...words];
  process.exitCode = undefined;
  const listeners = process.stdout.listeners('error');
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)];
  try {
    await import(`${ENTRY}?command=${id}`);
  } finally {
    stdout.end();
    stderr.end();
    for (const each of process.stdout.listeners('error')) {
      if (!listeners.includes(each)) process.stdout.removeListener('error', each as () => void);
    }
  }
  const exitCode = Number(process.exitCode ?? 0);
  process.exitCode = undefined;
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

/** The module of `referenceReader`, also in checkouts without the folder `select`. */
const REFERENCES =
  ['src/prices/market/references.ts', 'src/prices/references.ts'].find((path) =>
    existsSync(join(CHECKOUT, path)),
  ) ?? '';

/** A page of the feed. */
interface FeedPage {
  readonly changes: readonly string[];
  readonly next: string;
}

/** Reads the whole change feed of a database, from its beginning, in pages. */
async function feedOf(url: string): Promise<string[]> {
  const { openClient } = await import(moduleOf('src/db/client.ts'));
  const { readPage } = await import(moduleOf('src/prices/changes/page.ts'));
  const { referenceReader } = await import(moduleOf(REFERENCES));
  const { MARKETS } = await import(moduleOf('src/catalog/markets.ts'));
  const client = openClient({
    url,
    connectionsMax: 4,
    acquireTimeoutMs: 10_000,
    statementTimeoutMs: 0,
    readOnly: true,
    applicationName: 'oracle of loads',
  });
  try {
    const sources = { reads: { db: () => client.db }, references: referenceReader(4) };
    const markets = MARKETS.map((each: { slug: string }) => each.slug);
    const changes: string[] = [];
    for (let after: string | null = null; ; ) {
      const page: FeedPage = await readPage(sources, { markets, after, limit: 500 });
      if (page.changes.length === 0) return changes;
      changes.push(...page.changes);
      after = page.next;
    }
  } finally {
    await client.close();
  }
}

async function answerOf(task: Task): Promise<TaskAnswer> {
  try {
    if (task.kind === 'feed') return { id: task.id, changes: await feedOf(task.url) };
    return { id: task.id, outcome: await run(task) };
  } catch (error) {
    return { id: task.id, error: (error as Error).stack ?? String(error) };
  }
}

process.on('message', (task: Task) => {
  void answerOf(task).then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit());
