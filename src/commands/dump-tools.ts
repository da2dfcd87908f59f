import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The programs of PostgreSQL that write and read a dump, as far as they are installed. */
export interface DumpTools {
  /** Their major version. */
  readonly version: number;
  dump(url: string, file: string): Promise<void>;
  restore(url: string, file: string): Promise<void>;
}

/**
 * What an address says to libpq: the password goes where nobody can list it. One that stands in
 * the environment already, beside an address without any, stays there.
 */
function withoutPassword(url: string): { address: string; env: NodeJS.ProcessEnv } {
  const address = new URL(url);
  const own = address.searchParams.get('password') ?? decodeURIComponent(address.password);
  address.password = '';
  address.searchParams.delete('password');
  // Known to our driver alone.
  address.searchParams.delete('uselibpqcompat');
  const env = own === '' ? process.env : { ...process.env, PGPASSWORD: own };
  return { address: address.href, env };
}

/** A failure in words: what the program said last. */
function complaintOf(program: string, error: unknown): Error {
  const { stderr = '', message } = error as Error & { stderr?: string };
  const said = stderr.trim().split('\n').at(-1) || message;
  return new Error(`${program}: ${said}`, { cause: error });
}

async function call(program: string, args: readonly string[], url: string): Promise<void> {
  const { address, env } = withoutPassword(url);
  await run(program, [...args, `--dbname=${address}`], { env }).catch((error: unknown) => {
    throw complaintOf(program, error);
  });
}

/** Finds pg_dump and pg_restore in the PATH; null when they are not there. */
export async function findTools(): Promise<DumpTools | null> {
  const versions = ['pg_dump', 'pg_restore'].map(async (program) => {
    const { stdout } = await run(program, ['--version']);
    return Number(/ (\d+)/.exec(stdout)?.[1]);
  });
  const found = await Promise.all(versions).catch(() => null);
  if (found === null) return null;
  return {
    version: Math.min(...found),
    dump: (url, file) => call('pg_dump', ['--format=custom', `--file=${file}`], url),
    // The restored copy belongs to who restores it; the rights of the accounts come along.
    restore: (url, file) => call('pg_restore', ['--exit-on-error', '--no-owner', file], url),
  };
}
