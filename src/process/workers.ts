import cluster, { type Worker } from 'node:cluster';
import { extname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { clusterExposition } from '../metrics/metrics.ts';
import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { addressOf } from './banner.ts';
import type { Lifecycle } from './lifecycle.ts';
import { logWorkerStates } from './log.ts';
import { serveMetrics } from './metrics-server.ts';
import type { Prepared } from './prepare.ts';

/**
 * Node options of the service. The default young generation grows to twice this size, and a process
 * does not return that memory. `npm start` and the image set the option too, because it applies
 * only from the start of a process.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16'];

interface WorkersOptions {
  readonly count: number;
  /** The program of a worker, and its additional environment variables. */
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** Time for a worker to stop, before it is killed. */
  readonly endMs: number;
  readonly logger: Logger;
}

/** A worker exited before it listened. */
export class WorkerFailed extends ExpectedError {
  override readonly name = 'WorkerFailed';
  override readonly exitCode: number;

  constructor(exitCode: number | null) {
    super('a worker could not start');
    this.exitCode = exitCode ?? EXIT.failed;
  }
}

const BACKOFF_MS = 100;
const BACKOFF_MS_MAX = 10_000;
/** Message that ends a worker whose replacement listens. */
const RETIRE = 'retire';
/** Uptime after which an exit is not a start failure, and the backoff is reset. */
const SETTLED_MS = 10_000;

/** Calls `retire` in a worker when it has been replaced. */
export function onRetire(retire: () => void): void {
  process.on('message', (message) => {
    if (message === RETIRE) retire();
  });
}

/**
 * Worker processes on one port. This process owns the port and distributes connections round-robin.
 * A worker that exits unexpectedly is replaced, with exponential backoff.
 */
export class Workers {
  readonly #options: WorkersOptions;
  /** Listening workers, oldest first. */
  readonly #listening = new Set<Worker>();
  readonly #all = new Set<Worker>();
  readonly #retiring = new WeakSet<Worker>();
  readonly #ending = new WeakMap<Worker, Promise<void>>();
  readonly #stopping = new AbortController();
  #replacing: Promise<void> = Promise.resolve();
  #backoffMs = BACKOFF_MS;
  #port = 0;

  constructor(options: WorkersOptions) {
    this.#options = options;
    // The last of repeated options wins. Some options, such as --import, may be repeated.
    const missing = NODE_FLAGS.filter((each) => !process.execArgv.includes(each));
    const execArgv = [...missing, ...process.execArgv];
    cluster.setupPrimary({ exec: options.program, args: [], execArgv });
  }

  get count(): number {
    return this.#listening.size;
  }

  /** Starts all workers. Returns the port. @throws WorkerFailed if one of them does not listen */
  async start(): Promise<number> {
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#fork()));
    return this.#port;
  }

  /** Rolling restart: each worker stops after its replacement listens. */
  replaceAll(): Promise<void> {
    this.#replacing = this.#replacing.then(() => this.#replaceAll());
    return this.#replacing;
  }

  /** Sends SIGTERM to all workers, and waits until they exit. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(
      [...this.#all].map((each) => this.#stopOnce(each, () => each.process.kill('SIGTERM'))),
    );
  }

  /** Sends SIGKILL to all workers. */
  kill(): void {
    this.#stopping.abort();
    for (const each of this.#all) each.process.kill('SIGKILL');
  }

  async #replaceAll(): Promise<void> {
    const { logger } = this.#options;
    for (const old of [...this.#listening]) {
      if (this.#stopping.signal.aborted) return;
      // The worker has exited and is already being replaced.
      if (!this.#listening.has(old)) continue;
      // If the old worker exits now, this fork is its replacement.
      this.#retiring.add(old);
      try {
        await this.#fork();
      } catch {
        if (this.#stopping.signal.aborted) return;
        this.#retiring.delete(old);
        logger.error('a new worker could not start; the other workers are not replaced');
        if (!this.#listening.has(old)) void this.#replace(old);
        return;
      }
      await this.#stopOnce(old, () => old.send(RETIRE));
    }
    const workers = this.count === 1 ? 'the worker was' : `all ${this.count} workers were`;
    logger.info(`${workers} replaced`);
  }

  /** Starts a worker, and waits until it listens. */
  #fork(): Promise<Worker> {
    const worker = cluster.fork(this.#options.env);
    const begun = performance.now();
    this.#all.add(worker);
    return new Promise((resolve, reject) => {
      worker.once('listening', ({ port }) => {
        this.#port = port;
        this.#listening.add(worker);
        resolve(worker);
      });
      worker.once('exit', (code) => {
        this.#all.delete(worker);
        reject(new WorkerFailed(code));
        const wasUp = this.#listening.delete(worker);
        if (!wasUp || this.#retiring.has(worker) || this.#stopping.signal.aborted) return;
        if (performance.now() - begun > SETTLED_MS) this.#backoffMs = BACKOFF_MS;
        void this.#replace(worker);
      });
    });
  }

  async #replace({ process: { pid, exitCode, signalCode } }: Worker): Promise<void> {
    const { logger } = this.#options;
    logger.error(`worker ${pid} exited (${signalCode ?? exitCode}) and is replaced`);
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await pause(this.#backoffMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      this.#backoffMs = Math.min(BACKOFF_MS_MAX, this.#backoffMs * 2);
      try {
        await this.#fork();
        return;
      } catch {
        logger.error('a worker could not start; the start is retried');
      }
    }
  }

  /** Signals a worker to stop, only once, and waits until it exits. */
  #stopOnce(worker: Worker, signalStop: () => unknown): Promise<void> {
    this.#retiring.add(worker);
    const ending = this.#ending.get(worker) ?? this.#stopWorker(worker, signalStop);
    this.#ending.set(worker, ending);
    return ending;
  }

  async #stopWorker(worker: Worker, signalStop: () => unknown): Promise<void> {
    if (worker.isDead()) return;
    const ended = new Promise<boolean>((resolve) => worker.once('exit', () => resolve(true)));
    signalStop();
    const late = pause(this.#options.endMs, false, { ref: false });
    if (!(await Promise.race([ended, late]))) worker.process.kill('SIGKILL');
    await ended;
  }
}

const PROGRAM = fileURLToPath(
  // The installed package contains JavaScript instead of TypeScript.
  new URL(`../server${extname(import.meta.filename)}`, import.meta.url),
);
/** Time after the drain of a worker, to close database connections and the metrics. */
const END_MARGIN_MS = 15_000;

/** Additional environment of a worker: values that this process determined for all. */
function environmentOf({ url, usageUrl, config }: Prepared): Record<string, string> {
  return {
    DATABASE_URL: url,
    LOG_LEVEL: config.LOG_LEVEL,
    ...(usageUrl === undefined ? {} : { USAGE_DATABASE_URL: usageUrl }),
    ...(config.JWT_SECRET === undefined ? {} : { JWT_SECRET: config.JWT_SECRET }),
  };
}

/** Serves the combined metrics of all workers. */
async function serveClusterMetrics(
  config: Config,
  logger: Logger,
  lifecycle: Lifecycle,
): Promise<void> {
  if (config.METRICS_PORT === undefined) return;
  const { METRICS_PORT: port, METRICS_HOST: host } = config;
  const exposition = clusterExposition();
  const server = await serveMetrics(async () => exposition, { port, host });
  lifecycle.onShutdown(() => server.close());
  logger.info(`metrics are at ${addressOf(host, server.port)}/metrics`);
}

/** Starts the workers. Returns their address, and the object that replaces and stops them. */
export async function serveByWorkers(
  prepared: Prepared,
  logger: Logger,
  life: Lifecycle,
): Promise<{ readonly address: string; readonly workers: Workers }> {
  const { config } = prepared;
  await serveClusterMetrics(config, logger, life);
  logWorkerStates(logger);
  const workers = new Workers({
    count: config.WORKERS,
    program: PROGRAM,
    env: environmentOf(prepared),
    endMs: config.STOP_NOTICE_MS + config.SHUTDOWN_TIMEOUT_MS + END_MARGIN_MS,
    logger,
  });
  life.onShutdown(() => workers.stop());
  const port = await workers.start();
  return { address: addressOf(config.HOST, port), workers };
}
