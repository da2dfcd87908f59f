import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';

const run = promisify(execFile);

/** The embedded PostgreSQL failed. The message states what the operator has to do. */
export class EmbeddedDatabaseError extends ExpectedError {
  override readonly name = 'EmbeddedDatabaseError';
  override readonly exitCode = EXIT.failed;
}

/** True if a process with this number exists, of any user. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * The start time of a process, in a format of the operating system; '' if unknown, null if there is
 * no such process.
 */
async function startOf(pid: number): Promise<string | null> {
  if (!processExists(pid)) return null;
  if (process.platform === 'linux') {
    try {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
      // The name may contain spaces and parentheses; the start time is the 20th field after it.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      // A zombie has ended; its parent has not read its exit code yet.
      return fields[0] === 'Z' || fields[0] === 'X' ? null : `${fields[19]}@${boot.trim()}`;
    } catch (error) {
      // If /proc is not mounted, only the number identifies the process.
      return (error as NodeJS.ErrnoException).code === 'ENOENT' && !processExists(pid) ? null : '';
    }
  }
  if (process.platform === 'win32') return '';
  const { stdout } = await run('ps', ['-o', 'lstart=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }));
  return stdout.trim() === '' ? null : stdout.trim();
}

/** Identifies this process uniquely, also against a later process with the same number. */
export const ownIdentity = async (): Promise<string> =>
  `${process.pid} ${(await startOf(process.pid)) ?? ''}`;

/** True if the process with this identity is running. */
export async function isAlive(identity: string): Promise<boolean> {
  const [, pid, recordedStart] = /^(\d{1,10}) ?(.*)$/s.exec(identity.trim()) ?? [];
  if (pid === undefined) return false;
  const current = await startOf(Number(pid));
  return current !== null && (current === recordedStart || current === '' || recordedStart === '');
}

const readLock = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/** Creates the lock file unless it exists. A hard link creates name and content atomically. */
function tryLink(file: string, identity: string): boolean {
  const own = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(own, identity, { mode: 0o600 });
  try {
    linkSync(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    unlinkSync(own);
  }
}

/**
 * Removes the lock of a dead process. A second lock file, held for a few system calls, prevents two
 * processes from removing each other's new lock.
 */
function clearLock(file: string, dead: string): void {
  const guard = `${file}.clearing`;
  try {
    closeSync(openSync(guard, 'wx'));
  } catch {
    try {
      if (Date.now() - statSync(guard).mtimeMs > 10_000) unlinkSync(guard);
    } catch {
      // Another process cleared it first.
    }
    return;
  }
  try {
    if (readLock(file) === dead) unlinkSync(file);
  } finally {
    unlinkSync(guard);
  }
}

/**
 * Runs work under a lock file. The lock of a dead process is removed.
 * @throws EmbeddedDatabaseError if a running process holds the lock for longer than `waitMs`
 */
export async function withLock<T>(
  file: string,
  waitMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const identity = await ownIdentity();
  const deadline = Date.now() + waitMs;
  while (!tryLink(file, identity)) {
    const holder = readLock(file);
    if (holder !== null && !(await isAlive(holder))) clearLock(file, holder);
    else if (Date.now() > deadline) {
      const pid = holder?.split(' ')[0] ?? 'unknown';
      throw new EmbeddedDatabaseError(
        `process ${pid} has held ${file} for ${waitMs / 1000} s; end that process, or wait ` +
          'until it ends',
      );
    } else await pause(25);
  }
  try {
    return await work();
  } finally {
    await rm(file, { force: true });
  }
}
