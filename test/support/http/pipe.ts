import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type t from 'tap';
import { makeFolder } from '../run/folders.ts';

/** A pipe that a test reads on demand. */
export interface Pipe {
  /** The write end for child processes; the test closes it once they have it. */
  readonly writeEnd: number;
  /** Reads the buffered text without waiting. */
  read(): string;
  /** Closes the read end. */
  closeReader(): void;
}

/** Makes a named pipe without an automatic reader. */
export async function pipe(test: Pick<typeof t, 'teardown'>): Promise<Pipe> {
  const folder = await makeFolder();
  const path = join(folder.path, 'pipe');
  execFileSync('mkfifo', [path]);
  let reader: number | null = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  const closeReader = (): void => {
    if (reader !== null) closeSync(reader);
    reader = null;
  };
  test.teardown(async () => {
    closeReader();
    await folder.remove();
  });
  const piece = Buffer.alloc(65_536);
  const read = (): string => {
    const pieces: Buffer[] = [];
    try {
      for (let at = readSync(reader ?? -1, piece); at > 0; at = readSync(reader ?? -1, piece)) {
        pieces.push(Buffer.from(piece.subarray(0, at)));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    return Buffer.concat(pieces).toString('utf8');
  };
  return { writeEnd, read, closeReader };
}
