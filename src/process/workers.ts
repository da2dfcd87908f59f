import cluster, { type Worker } from 'node:cluster';
import { extname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { clusterExposition } from '../metrics/metrics.ts';
import { addressOf } from './banner.ts';
import type { Life } from './life.ts';
import { serveMetrics } from './metrics-server.ts';
import { deliveriesTo, heirless, type Left, retire, whatIsUnderWay } from './passing.ts';
import type { Prepared } from './prepare.ts';
import { hearWorkers } from './told-once.ts';

/**
 * What Node is told when it runs the service. The part of its heap where objects are young would
 * grow to twice as much by itself, and a process that was busy once keeps that. `npm start` and the
 * image name it too: it counts from the start.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16'];

interface WorkersOptions {
  readonly count: number;
  /** The program of a worker, and what its environment has besides ours. */
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** How long a worker that was told to end may take. */
  readonly endMs: number;
  readonly logger: Logger;
}

/** A worker that ended before it listened. */
export class WorkerFailed extends Error {
  override readonly name = 'WorkerFailed';
  readonly exitCode: number;

  constructor(exitCode: number | null) {
    super('a worker could not start');
    this.exitCode = exitCode ?? 1;
  }
}

const BACKOFF_MS = 100;
const BACKOFF_MS_MAX = 10_000;
/** A worker that lived so long did not fail because of how it starts. */
const SETTLED_MS = 10_000;

/**
 * Processes that answer on one port, which this one owns: it hands each connection to the next of
 * them. One that ends unasked is replaced, after a pause that grows while they keep ending.
 */
export class Workers {
  readonly #options: WorkersOptions;
  /** Workers that listen, the oldest first, and how to give each a connection. */
  readonly #listening = new Map<Worker, (left: Left) => void>();
  readonly #all = new Set<Worker>();
  readonly #told = new WeakSet<Worker>();
  readonly #ending = new WeakMap<Worker, Promise<void>>();
  readonly #stopping = new AbortController();
  #rolling: Promise<void> = Promise.resolve();
  #backoffMs = BACKOFF_MS;
  #port = 0;
  #passedOn = 0;

  constructor(options: WorkersOptions) {
    this.#options = options;
    // Of what is told twice the last counts; some of it, as --import, may well be there twice.
    const lacking = NODE_FLAGS.filter((each) => !process.execArgv.includes(each));
    const execArgv = [...lacking, ...process.execArgv];
    cluster.setupPrimary({ exec: options.program, args: [], execArgv });
  }

  get count(): number {
    return this.#listening.size;
  }

  /**
   * Starts them all; returns the port on which they answer.
   * @throws WorkerFailed when one of them does not come up
   */
  async start(): Promise<number> {
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#fork()));
    return this.#port;
  }

  /** Puts a new worker in the place of each, one after another; there is never one less. */
  replaceAll(): Promise<void> {
    this.#rolling = this.#rolling.then(() => this.#replaceAll());
    return this.#rolling;
  }

  /** Tells all to end, and waits until they have. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(
      [...this.#all].map((each) => this.#end(each, () => each.process.kill('SIGTERM'))),
    );
  }

  /** Ends all at once. */
  kill(): void {
    this.#stopping.abort();
    for (const each of this.#all) each.process.kill('SIGKILL');
  }

  async #replaceAll(): Promise<void> {
    const { logger } = this.#options;
    for (const old of [...this.#listening.keys()]) {
      if (this.#stopping.signal.aborted) return;
      // Another has taken its place already.
      if (!this.#listening.has(old)) continue;
      // One that ends meanwhile needs no other in its place: this is it.
      this.#told.add(old);
      try {
        await this.#fork();
      } catch {
        if (this.#stopping.signal.aborted) return;
        this.#told.delete(old);
        logger.error('a new worker could not start; the others go on as they are');
        if (!this.#listening.has(old)) void this.#replace(old);
        return;
      }
      await this.#end(old, () => retire(old));
    }
    const told = this.count === 1 ? 'the worker was' : `all ${this.count} workers were`;
    logger.info(`${told} replaced`);
  }

  /** A new worker, once it listens. */
  #fork(): Promise<Worker> {
    const worker = cluster.fork(this.#options.env);
    const passOn = (left: Left): void => this.#passOn(left, worker);
    whatIsUnderWay(worker, (handle) => passOn({ handle, isUsed: false, refusals: 0 }));
    const deliver = deliveriesTo(worker, passOn);
    heirless(worker, passOn);
    const begun = performance.now();
    this.#all.add(worker);
    return new Promise((resolve, reject) => {
      worker.once('listening', ({ port }) => {
        this.#port = port;
        this.#listening.set(worker, deliver);
        resolve(worker);
      });
      worker.once('exit', (code) => {
        this.#all.delete(worker);
        reject(new WorkerFailed(code));
        const wasUp = this.#listening.delete(worker);
        if (!wasUp || this.#told.has(worker) || this.#stopping.signal.aborted) return;
        if (performance.now() - begun > SETTLED_MS) this.#backoffMs = BACKOFF_MS;
        void this.#replace(worker);
      });
    });
  }

  async #replace({ process: { pid, exitCode, signalCode } }: Worker): Promise<void> {
    const { logger } = this.#options;
    logger.error(`worker ${pid} ended (${signalCode ?? exitCode}); another takes its place`);
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await pause(this.#backoffMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      this.#backoffMs = Math.min(BACKOFF_MS_MAX, this.#backoffMs * 2);
      try {
        await this.#fork();
        return;
      } catch {
        logger.error('a worker could not start; it is tried again');
      }
    }
  }

  /** Gives a connection to a worker that stays, to each in turn; one without room to the next. */
  #passOn(left: Left, from: Worker): void {
    const staying = [...this.#listening.keys()].filter(
      (each) => !this.#told.has(each) && each.isConnected(),
    );
    const place = staying.indexOf(from);
    const next = staying[(place < 0 ? this.#passedOn++ : place + 1) % staying.length];
    const deliver = next && this.#listening.get(next);
    if (deliver && left.refusals < staying.length) deliver(left);
    else left.handle.close();
  }

  /** Tells a worker to end, once, and waits until it has. */
  #end(worker: Worker, tell: () => unknown): Promise<void> {
    this.#told.add(worker);
    const ending = this.#ending.get(worker) ?? this.#tellToEnd(worker, tell);
    this.#ending.set(worker, ending);
    return ending;
  }

  async #tellToEnd(worker: Worker, tell: () => unknown): Promise<void> {
    if (worker.isDead()) return;
    const ended = new Promise<boolean>((resolve) => worker.once('exit', () => resolve(true)));
    tell();
    const late = pause(this.#options.endMs, false, { ref: false });
    if (!(await Promise.race([ended, late]))) worker.process.kill('SIGKILL');
    await ended;
  }
}

const PROGRAM = fileURLToPath(
  // The package holds JavaScript.
  new URL(`../server${extname(import.meta.filename)}`, import.meta.url),
);
/** Beyond the drain of a worker: its connections to the database, and its metrics. */
const END_MARGIN_MS = 15_000;

/** The environment of a worker beside the settings: facts that this process found for all. */
function environmentOf({ url, usageUrl, config }: Prepared): Record<string, string> {
  return {
    DATABASE_URL: url,
    LOG_LEVEL: config.LOG_LEVEL,
    ...(usageUrl === undefined ? {} : { USAGE_DATABASE_URL: usageUrl }),
    ...(config.JWT_SECRET === undefined ? {} : { JWT_SECRET: config.JWT_SECRET }),
  };
}

/** Serves the metrics of all workers together, on a port of their own. */
async function tellMetrics(config: Config, logger: Logger, life: Life): Promise<void> {
  if (config.METRICS_PORT === undefined) return;
  const { METRICS_PORT: port, METRICS_HOST: host } = config;
  const exposition = clusterExposition();
  const server = await serveMetrics(async () => exposition, { port, host });
  life.atEnd(() => server.close());
  logger.info(`metrics are at ${addressOf(host, server.port)}/metrics`);
}

/** Starts workers that serve; returns their address, and the pool that replaces or ends them. */
export async function serveByWorkers(
  prepared: Prepared,
  logger: Logger,
  life: Life,
): Promise<{ readonly address: string; readonly workers: Workers }> {
  const { config } = prepared;
  await tellMetrics(config, logger, life);
  hearWorkers(logger);
  const workers = new Workers({
    count: config.WORKERS,
    program: PROGRAM,
    env: environmentOf(prepared),
    endMs: config.STOP_NOTICE_MS + config.SHUTDOWN_TIMEOUT_MS + END_MARGIN_MS,
    logger,
  });
  life.atEnd(() => workers.stop());
  const port = await workers.start();
  return { address: addressOf(config.HOST, port), workers };
}
