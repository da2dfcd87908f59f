import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Manifest } from '../../archive/manifest.ts';
import type { Client } from '../../db/client.ts';
import { migrateUp } from '../../db/migrate/migrate.ts';
import { newestRevision, wireText } from '../../db/revisions.ts';
import { openWriter } from '../../process/database.ts';
import { EXIT, ExpectedError, UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { RULES, verify } from '../../verify/verify.ts';
import { command, json, option } from '../command.ts';
import { type Work, withDatabase } from '../database.ts';
import { printLines, printTable } from '../output.ts';

const runProgram = promisify(execFile);

/** pg_dump and pg_restore. */
interface DumpTools {
  /** Their major version. */
  readonly version: number;
  dump(url: string, file: string): Promise<void>;
  restore(url: string, file: string): Promise<void>;
}

/**
 * Splits an address for libpq: the password moves to PGPASSWORD, because command lines are visible
 * to other users. Without a password in the address, PGPASSWORD stays unchanged.
 */
function withoutPassword(url: string): { address: string; env: NodeJS.ProcessEnv } {
  const address = new URL(url);
  const own = address.searchParams.get('password') ?? decodeURIComponent(address.password);
  address.password = '';
  address.searchParams.delete('password');
  // A parameter of node-postgres, unknown to libpq.
  address.searchParams.delete('uselibpqcompat');
  const env = own === '' ? process.env : { ...process.env, PGPASSWORD: own };
  return { address: address.href, env };
}

/** An error with the last line that the program printed. */
function complaintOf(program: string, error: unknown): Error {
  const { stderr = '', message } = error as Error & { stderr?: string };
  const said = stderr.trim().split('\n').at(-1) || message;
  return new Error(`${program}: ${said}`, { cause: error });
}

async function call(program: string, args: readonly string[], url: string): Promise<void> {
  const { address, env } = withoutPassword(url);
  await runProgram(program, [...args, `--dbname=${address}`], { env }).catch((error: unknown) => {
    throw complaintOf(program, error);
  });
}

/** Finds pg_dump and pg_restore in the PATH; null if they are not installed. */
export async function findTools(): Promise<DumpTools | null> {
  const versions = ['pg_dump', 'pg_restore'].map(async (program) => {
    const { stdout } = await runProgram(program, ['--version']);
    return Number(/ (\d+)/.exec(stdout)?.[1]);
  });
  const found = await Promise.all(versions).catch(() => null);
  if (found === null) return null;
  return {
    version: Math.min(...found),
    dump: (url, file) => call('pg_dump', ['--format=custom', `--file=${file}`], url),
    // The restored copy is owned by the restoring account; grants are restored too.
    restore: (url, file) => call('pg_restore', ['--exit-on-error', '--no-owner', file], url),
  };
}

interface DrillOptions {
  readonly by?: 'dump' | 'export';
  /** Any database of the server for the copy; defaults to the server of the original. */
  readonly server?: string;
  readonly keep?: true;
}

/** One table: its rows and the SHA-256 of its export, in the original and in the copy. */
interface Compared {
  readonly what: string;
  readonly original: string;
  readonly restored: string;
}

/** The result of a drill. */
interface Drill {
  /** The newest revision of the backup. */
  readonly revision: string;
  /** The size of the backup. */
  readonly bytes: number;
  readonly steps: readonly { readonly step: string; readonly seconds: number }[];
  readonly compared: readonly Compared[];
  /** Names of rules that the restored data breaks. */
  readonly broken: readonly string[];
  /** The restored database, if it was kept. */
  readonly kept: string | null;
}

/** Data was loaded during the drill, so the exports have different revisions. */
class MovingDataError extends ExpectedError {
  override readonly name = 'MovingDataError';
  override readonly exitCode = EXIT.failed;
}

/** pg_dump and pg_restore if they support this server version; null to use `db export`. */
async function toolsFor({ pool }: Client, by: DrillOptions['by']): Promise<DumpTools | null> {
  if (by === 'export') return null;
  const tools = await findTools();
  const { rows } = await pool.query<{ major: number }>(
    `select current_setting('server_version_num')::integer / 10000 as major`,
  );
  const major = rows[0]?.major ?? 0;
  if (tools && tools.version >= major) return tools;
  if (by !== 'dump') return null;
  const found = tools ? `the pg_dump in the PATH is of version ${tools.version}` : 'none is there';
  throw new UsageError(`--by dump needs pg_dump and pg_restore ${major} or newer; ${found}`);
}

/** Compares the tables of two exports. Equal data has equal checksums on every server. */
function compare(original: Manifest, restored: Manifest): Compared[] {
  const sumOf = ({ files }: Manifest, table: string): string => {
    const file = files.find((each) => each.table === table);
    return file === undefined ? 'none' : `${file.rows} rows, ${file.sha256}`;
  };
  return original.files.map(({ table }) => ({
    what: table,
    original: sumOf(original, table),
    restored: sumOf(restored, table),
  }));
}

/** Creates an empty database for the work, and drops it afterwards unless `keep` is set. */
async function withCopy<T>(
  { config }: Work,
  server: string,
  keep: boolean,
  work: (copy: Client, url: string, name: string) => Promise<T>,
): Promise<T> {
  const name = `prices_drill_${randomBytes(4).toString('hex')}`;
  const admin = openWriter(server, config);
  let isKept = false;
  try {
    await admin.pool.query(`create database ${name} template template0`);
    const url = new URL(server);
    url.pathname = `/${name}`;
    const copy = openWriter(url.href, config);
    const result = await work(copy, url.href, name).finally(() => copy.close());
    isKept = keep;
    return result;
  } finally {
    if (!isKept) {
      await admin.pool.query(`drop database if exists ${name} with (force)`).catch(() => {});
    }
    await admin.close();
  }
}

/**
 * Exports the original, backs it up, restores the backup into a copy, verifies and exports the
 * copy, and compares both exports, past and ledger included. The original is only read.
 * @throws MovingDataError if data was written meanwhile
 */
async function drill(work: Work, folder: string, options: DrillOptions): Promise<Drill> {
  const { client: original, signal, progress } = work;
  const address = original.link.url;
  const tools = await toolsFor(original, options.by);
  const [exported, dump] = [join(folder, 'export'), join(folder, 'prices.dump')];
  const steps: { step: string; seconds: number }[] = [];
  const timed = async <T>(step: string, run: () => Promise<T>): Promise<T> => {
    progress.update(step);
    const began = performance.now();
    const result = await run();
    steps.push({ step, seconds: Math.round(performance.now() - began) / 1000 });
    return result;
  };
  const { exportArchive } = await import('../../archive/export.ts');
  const { importArchive } = await import('../../archive/import.ts');
  const exportTo = (client: Client, to: string) =>
    exportArchive(client, { folder: to, format: 'csv', markets: null, signal });
  const { server = address, keep = false } = options;
  return withCopy(work, server, keep, async (copy, copyUrl, name) => {
    const was = await timed('export the original', () => exportTo(original, exported));
    if (tools) {
      await timed('dump', () => tools.dump(address, dump));
      await timed('restore', () => tools.restore(copyUrl, dump));
    } else {
      await timed('import', async () => {
        await migrateUp(copy.db);
        await importArchive(copy, { folder: exported, signal });
      });
    }
    const { epoch, revision } = await newestRevision(copy.db);
    const { rules } = await timed('verify the copy', () => verify(copy, RULES, () => {}, signal));
    const is = await timed('export the copy', () => exportTo(copy, join(folder, 'copy')));
    if ((await newestRevision(original.db)).revision !== revision) {
      throw new MovingDataError(
        'data was written during the drill, so the copy is of an earlier revision: run it again ' +
          'when nothing is loaded',
      );
    }
    const exportBytes = was.files.reduce((sum, { bytes }) => sum + bytes, 0);
    return {
      revision: wireText(epoch, revision),
      bytes: tools ? (await stat(dump)).size : exportBytes,
      steps,
      compared: compare(was, is),
      broken: rules.filter(({ count }) => count > 0).map(({ rule }) => rule),
      kept: keep ? name : null,
    };
  });
}

const isSame = ({ original, restored }: Compared): boolean => original === restored;

const short = (text: string): string => text.replace(/[0-9a-f]{64}/, (sum) => sum.slice(0, 12));

function printDrill({ revision, bytes, steps, compared, broken, kept }: Drill): void {
  printTable(compared, {
    what: ({ what }) => what,
    original: ({ original }) => short(original),
    restored: ({ restored }) => short(restored),
    same: (each) => (isSame(each) ? 'yes' : 'NO'),
  });
  printLines('');
  printTable(steps, { step: ({ step }) => step, seconds: ({ seconds }) => seconds.toFixed(1) });
  const different = compared.filter((each) => !isSame(each)).length;
  const size = `${(bytes / 1e6).toFixed(1)} MB`;
  printLines(
    '',
    different + broken.length === 0
      ? `The restored copy is the original: ${compared.length} tables compared ` +
          `(revision ${revision}, ${size}).`
      : `The restored copy differs in ${different} of ${compared.length} tables` +
          `${broken.length > 0 ? ` and breaks ${broken.join(', ')}` : ''} (revision ${revision}).`,
    ...(kept === null ? [] : [`It was kept as the database ${kept}.`]),
  );
}

/** Adds `db drill`. */
export const addDrill = command({
  name: 'drill',
  summary: 'restore a backup into a copy, and compare',
  description:
    'Backs the database up, restores the backup into a database of its own, checks its rules, ' +
    'and compares the exports of both, table by table and byte for byte.',
  options: [
    option(
      '--by <way>',
      'dump: pg_dump and pg_restore, which have to be in the PATH and ' +
        'no older than the server; export: db export and import',
    ).choices(['dump', 'export']),
    option('--server <url>', 'where to make the copy: any database of another server'),
    option('--keep', 'keep the copy for inspection'),
    json(),
  ],
  help: `
The original is only read, and the copy is removed. It needs an account that may make databases,
and room for a second copy. Without --by it takes pg_dump where it can. Exit code 0 says that
the copy is the original, 1 that something differs or failed.

Examples:
  ${PROGRAM} db drill
  ${PROGRAM} db drill --server postgres://postgres@spare.example/postgres --json`,
  async run(options: DrillOptions) {
    const report = await withDatabase(async (work) => {
      const folder = await mkdtemp(join(tmpdir(), 'prices-drill-'));
      return drill(work, folder, options).finally(() =>
        rm(folder, { recursive: true, force: true }),
      );
    });
    const isGood = report.compared.every(isSame) && report.broken.length === 0;
    return {
      data: report,
      print: () => printDrill(report),
      exitCode: isGood ? EXIT.ok : EXIT.failed,
    };
  },
});
