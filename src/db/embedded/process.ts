import process from 'node:process';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';

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
