import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';

/** The logger of the service. It writes JSON lines, without headers and queries of requests. */
export const loggerOf = (level: string, destination: DestinationStream): Logger =>
  pino({ level, serializers: { err: pino.stdSerializers.err } }, destination);

/** PIPE_BUF: writes to a pipe up to this size are atomic, so lines of processes do not mix. */
const WRITE_BYTES_MAX = 4_096;
/** Buffered bytes at which a write starts before the next flush. */
const WRITE_BYTES_MIN = 3_072;
const FLUSH_MS = 100;
/** About 10,000 lines, of some seconds under load. */
const BUFFERED_BYTES_MAX = 4_194_304;
/** Maximum wait for a blocked reader when the process exits. */
const EXIT_MS_MAX = 500;
const STANDARD_ERROR = 2;
const NEVER = new Int32Array(new SharedArrayBuffer(4));

interface LogOptions {
  readonly level: string;
  /** Maximum bytes of buffered lines; further lines are dropped and counted. */
  readonly bytesMax?: number;
}

export interface Log {
  readonly logger: Logger;
  /** Number of dropped lines. */
  readonly linesLost: number;
}

/**
 * Returns a descriptor whose writes fail with EAGAIN instead of blocking a thread. A pipe is opened
 * again, because O_NONBLOCK belongs to the open file description, which other processes share and
 * change. For a socket, Node sets the flag at the first use of `process.stderr`.
 */
function nonBlocking(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // Not Linux, a pipe of another account, or a pipe without a reader.
    return fd;
  }
}

/** Writes a text synchronously. @throws Error if it is not written by the deadline */
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

/** Undocumented fields of sonic-boom 4: buffered lines, and those of a failed or running write. */
interface Internals {
  readonly _bufs: string[];
  _writingBuf: string | Buffer;
  _len: number;
  readonly _writing: boolean;
}

/** pino's buffered destination, changed so that it keeps its lines after an error and retries. */
function openDestination(bytesMax: number) {
  const fd = nonBlocking(STANDARD_ERROR);
  const destination = pino.destination({
    fd,
    sync: false,
    minLength: WRITE_BYTES_MIN,
    maxWrite: WRITE_BYTES_MAX,
    maxLength: bytesMax,
    periodicFlush: FLUSH_MS,
    // The next line or flush retries. A pause of 100 ms would limit the throughput of a pipe.
    retryEAGAIN: () => false,
  });
  // pino's own listener stops all writes permanently after a reader has closed.
  destination.removeAllListeners('error').on('error', () => {});
  const internals = destination as unknown as Internals;
  // pino calls it at exit. The original retries a failed write (such as ENOSPC) forever.
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
      // The process exits: the lines are lost.
    }
  };
  return destination;
}

/**
 * Opens the log on standard error. It never blocks the event loop, never fails, and buffers at most
 * `bytesMax` bytes: further lines are dropped and counted. A later line reports their number.
 */
export function openLog({ level, bytesMax = BUFFERED_BYTES_MAX }: LogOptions): Log {
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
