import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';

/**
 * The log of the service: JSON lines, one for each request. A line has the method and path of the
 * request, never its headers or query.
 */
export const loggerOf = (level: string, destination: DestinationStream): Logger =>
  pino({ level, serializers: { err: pino.stdSerializers.err } }, destination);

/** PIPE_BUF: a pipe takes so much in one piece, which lines of other processes cannot part. */
const WRITE_BYTES_MAX = 4_096;
/** Bytes from which a write begins before the next flush. */
const WRITE_BYTES_MIN = 3_072;
const FLUSH_MS = 100;
/** Longest wait, when the process ends, for a reader that takes nothing. */
const EXIT_MS_MAX = 500;
const STANDARD_ERROR = 2;
const NEVER = new Int32Array(new SharedArrayBuffer(4));

interface LogOptions {
  readonly level: string;
  /** Bytes of the lines that wait to be written; further lines are dropped and counted. */
  readonly bytesMax: number;
}

export interface Log {
  readonly logger: Logger;
  /** Lines that were dropped so far. */
  readonly linesLost: number;
}

/**
 * A descriptor on which a write fails with EAGAIN instead of blocking a thread while the reader
 * stands still. A pipe is opened again: O_NONBLOCK belongs to the open file description, which
 * other processes share and change. Of a socket Node sets it when `process.stderr` is first used.
 */
function nonBlocking(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // Another system than Linux, another account's pipe, or a pipe without a reader.
    return fd;
  }
}

/** Writes a text, waiting for its reader until a moment. */
function writeSyncAll(fd: number, text: string | Buffer, deadline: number): void {
  let rest = typeof text === 'string' ? Buffer.from(text) : text;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const isFull = (error as NodeJS.ErrnoException).code === 'EAGAIN';
      if (!isFull || performance.now() > deadline) throw error;
      Atomics.wait(NEVER, 0, 0, 5);
    }
  }
}

/** What sonic-boom 4 keeps: the lines that wait, and those of a write that failed or runs. */
interface Internals {
  readonly _bufs: string[];
  _writingBuf: string | Buffer;
  _len: number;
  readonly _writing: boolean;
}

/** pino's buffered destination, which outlives errors: it keeps its lines and tries again. */
function openDestination(bytesMax: number) {
  const fd = nonBlocking(STANDARD_ERROR);
  const destination = pino.destination({
    fd,
    sync: false,
    minLength: WRITE_BYTES_MIN,
    maxWrite: WRITE_BYTES_MAX,
    maxLength: bytesMax,
    periodicFlush: FLUSH_MS,
    // The next line or flush tries again: a pause of 100 ms would bound the rate of a pipe.
    retryEAGAIN: () => false,
  });
  // pino's own listener stops all writes for good once a reader has closed.
  destination.removeAllListeners('error').on('error', () => {});
  const internals = destination as unknown as Internals;
  // pino calls it at exit. The original repeats a write that fails, as with ENOSPC, without end.
  destination.flushSync = () => {
    const deadline = performance.now() + EXIT_MS_MAX;
    const waiting: (string | Buffer)[] = internals._bufs.splice(0);
    if (!internals._writing) {
      waiting.unshift(internals._writingBuf);
      internals._writingBuf = '';
    }
    for (const text of waiting) internals._len -= Buffer.byteLength(text);
    try {
      for (const text of waiting) writeSyncAll(fd, text, deadline);
    } catch {
      // They cannot be written, and nobody waits for them.
    }
  };
  return destination;
}

/**
 * Opens the log on standard error. It never blocks the event loop, never fails and holds at most
 * `bytesMax` bytes: a line for which there is no room is dropped and counted. Once lines can be
 * written again, one of them says how many were dropped.
 */
export function openLog({ level, bytesMax }: LogOptions): Log {
  const destination = openDestination(bytesMax);
  const logger = loggerOf(level, destination);
  let lost = 0;
  let reported = 0;
  destination.on('drop', () => {
    lost += 1;
  });
  destination.on('drain', () => {
    if (lost === reported) return;
    const count = lost - reported;
    reported = lost;
    logger.warn({ count }, 'log lines were dropped: the log could not be written');
  });
  return {
    logger,
    get linesLost() {
      return lost;
    },
  };
}
