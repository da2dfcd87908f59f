import { runInNewContext } from 'node:vm';
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
/** Maximum wait for a log that cannot be written when the process exits. */
const EXIT_MS_MAX = 500;
const STANDARD_ERROR = 2;

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

/** pino's buffered destination, which keeps its lines after an error and retries. */
function openDestination(bytesMax: number) {
  let isExiting = false;
  const destination = pino.destination({
    fd: STANDARD_ERROR,
    sync: false,
    minLength: WRITE_BYTES_MIN,
    maxWrite: WRITE_BYTES_MAX,
    maxLength: bytesMax,
    periodicFlush: FLUSH_MS,
    // The next line or flush retries. A pause of 100 ms would limit the throughput of a pipe.
    retryEAGAIN: () => isExiting,
  });
  // pino's own listener stops all writes permanently after a reader has closed.
  destination.removeAllListeners('error').on('error', () => {});
  const flush = destination.flushSync.bind(destination);
  // pino calls it at exit. It retries a failed write (such as ENOSPC) forever; vm ends its loop.
  destination.flushSync = () => {
    isExiting = true;
    try {
      runInNewContext('flush()', { flush }, { timeout: EXIT_MS_MAX });
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
