import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { promisify } from 'node:util';
import { processExists } from '../../../src/db/embedded/process.ts';

const run = promisify(execFile);

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
