import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import type t from 'tap';
import type { HttpRequest, Target } from '../process/load.ts';
import { type ConnectionAnswer, LoadConnection, sharedNow } from './load-connection.ts';

type Test = Pick<typeof t, 'teardown'>;

/** An open-loop rate and its number of connections. */
export interface Pace {
  /** Infinity makes a closed loop on each connection. */
  readonly perSecond: number;
  readonly lines: number;
  /** Number of requests until the next pace; unlimited by default. */
  readonly count?: number;
  /**
   * Polling interval for answers and due requests: a wake-up per answer would take CPU from the
   * service, which a client on another machine would not.
   */
  readonly restMs?: number;
}

/** A load generator in its own thread, so that measuring costs the service little. */
export interface LoadThread {
  /** All answers so far; latencies count from the due time. */
  readonly answers: readonly ConnectionAnswer[];
  /** Changes the pace. */
  pace(pace: Pace): void;
  /** Stops sending and waits for the requests in flight. */
  stop(): Promise<readonly ConnectionAnswer[]>;
}

interface LoadTask {
  readonly target: Target;
  readonly ask: HttpRequest;
  readonly keepAlive: boolean;
}

/** Starts a thread that repeats one request; it waits for its first pace. */
export function startLoadThread(
  test: Test,
  target: Target,
  ask: HttpRequest,
  keepAlive = true,
): LoadThread {
  const what: LoadTask = { target: { port: target.port, key: target.key }, ask, keepAlive };
  const worker = new Worker(new URL(import.meta.url), { workerData: what });
  test.teardown(() => worker.terminate());
  const answers: ConnectionAnswer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    worker.once('exit', () => resolve());
    worker.once('error', reject);
  });
  worker.on('message', (some: readonly ConnectionAnswer[]) => answers.push(...some));
  return {
    answers,
    pace: (pace) => worker.postMessage(pace),
    stop: async () => {
      worker.postMessage(null);
      await ended;
      return answers;
    },
  };
}

/** Interval of batched reports: one message per answer would cost as much as a request. */
const REPORT_MS = 50;

const NEVER_CHANGED = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread for this time, then handles all pending events. */
function rest(ms: number): Promise<void> {
  Atomics.wait(NEVER_CHANGED, 0, 0, ms);
  return new Promise((resolve) => setImmediate(resolve));
}

/** The thread's sender: sends due requests at the current pace until the pace is null. */
class Sender {
  readonly #what: LoadTask;
  readonly #idle: LoadConnection[] = [];
  readonly #wakers = new Set<() => void>();
  #pace: Pace | null = null;
  #due = 0;
  #left = 0;
  #running = 0;
  #isOver = false;
  #unreported: ConnectionAnswer[] = [];

  constructor(what: LoadTask) {
    this.#what = what;
  }

  goOn(pace: Pace | null): void {
    this.#isOver = pace === null;
    this.#pace = pace;
    this.#due = sharedNow();
    this.#left = pace?.count ?? Number.POSITIVE_INFINITY;
    this.#wake();
  }

  async run(tell: (answers: readonly ConnectionAnswer[]) => void): Promise<void> {
    const reporting = setInterval(() => tell(this.#unreported.splice(0)), REPORT_MS);
    while (!this.#isOver) await this.#sendDue();
    while (this.#running > 0) await this.#woken();
    clearInterval(reporting);
    for (const line of this.#idle) line.close();
    tell(this.#unreported);
  }

  async #sendDue(): Promise<void> {
    if (this.#pace === null || this.#left === 0) return this.#woken();
    const { perSecond, lines, restMs } = this.#pace;
    if (this.#running >= lines) return restMs ? rest(restMs) : this.#woken();
    // In a closed loop a request is due when a connection is free, so it is never late.
    const due = perSecond === Number.POSITIVE_INFINITY ? sharedNow() : this.#due;
    const wait = due - sharedNow();
    if (wait > 0) return restMs ? rest(restMs) : pause(wait);
    this.#left -= 1;
    void this.#sendOne(due);
    this.#due = due + 1_000 / perSecond;
  }

  async #sendOne(due: number): Promise<void> {
    const { target, ask, keepAlive } = this.#what;
    let line = this.#idle.pop();
    while (line && !line.isOpen) line = this.#idle.pop();
    line ??= new LoadConnection(target, ask);
    this.#running += 1;
    this.#unreported.push(await line.ask(due));
    this.#running -= 1;
    if (keepAlive) this.#idle.push(line);
    else line.close();
    this.#wake();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => this.#wakers.add(resolve));
  }

  #wake(): void {
    for (const wake of this.#wakers) wake();
    this.#wakers.clear();
  }
}

if (parentPort !== null && workerData !== null) {
  const port = parentPort;
  const sender = new Sender(workerData as LoadTask);
  port.on('message', (pace: Pace | null) => sender.goOn(pace));
  await sender.run((answers) => port.postMessage(answers));
  port.close();
}
