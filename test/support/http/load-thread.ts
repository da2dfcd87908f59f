import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import type t from 'tap';
import type { Ask, Target } from '../process/load.ts';
import { Line, type LineAnswer, sharedNow } from './load-connection.ts';

type Test = Pick<typeof t, 'teardown'>;

/** How fast requests are sent, whatever became of those before, and over how many lines. */
export interface Pace {
  /** Infinity asks again over each line as soon as it was answered. */
  readonly perSecond: number;
  readonly lines: number;
  /** Sends so many and then waits for another pace; without it there is no end. */
  readonly count?: number;
  /**
   * Looks at what was answered and what is due only so often: a client that every answer wakes
   * takes much more of the machine from the service, and one on another machine takes nothing.
   */
  readonly restMs?: number;
}

/** Requests that a thread of its own sends, so that whoever measures costs the service little. */
export interface Flood {
  /** All that were answered so far; their times count from when they were due. */
  readonly answers: readonly LineAnswer[];
  /** Goes on at another pace. */
  pace(pace: Pace): void;
  /** Sends no more, and waits for those under way. */
  stop(): Promise<readonly LineAnswer[]>;
}

interface What {
  readonly target: Target;
  readonly ask: Ask;
  readonly keepAlive: boolean;
}

/** Starts a thread that sends one request again and again; it sends none until it has a pace. */
export function flood(test: Test, target: Target, ask: Ask, keepAlive = true): Flood {
  const what: What = { target: { port: target.port, key: target.key }, ask, keepAlive };
  const worker = new Worker(new URL(import.meta.url), { workerData: what });
  test.teardown(() => worker.terminate());
  const answers: LineAnswer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    worker.once('exit', () => resolve());
    worker.once('error', reject);
  });
  worker.on('message', (some: readonly LineAnswer[]) => answers.push(...some));
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

/** How often answers are told: each by itself would cost as much as asking. */
const TELL_MS = 50;

const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Lets nothing wake the thread for so long, and then handles all that has come. */
function rest(ms: number): Promise<void> {
  Atomics.wait(NEVER, 0, 0, ms);
  return new Promise((resolve) => setImmediate(resolve));
}

/** The thread: sends what is due, at the pace that it was told last, until it is told none. */
class Sender {
  readonly #what: What;
  readonly #idle: Line[] = [];
  readonly #wakers = new Set<() => void>();
  #pace: Pace | null = null;
  #due = 0;
  #left = 0;
  #running = 0;
  #isOver = false;
  #untold: LineAnswer[] = [];

  constructor(what: What) {
    this.#what = what;
  }

  goOn(pace: Pace | null): void {
    this.#isOver = pace === null;
    this.#pace = pace;
    this.#due = sharedNow();
    this.#left = pace?.count ?? Number.POSITIVE_INFINITY;
    this.#wake();
  }

  async run(tell: (answers: readonly LineAnswer[]) => void): Promise<void> {
    const telling = setInterval(() => tell(this.#untold.splice(0)), TELL_MS);
    while (!this.#isOver) await this.#sendDue();
    while (this.#running > 0) await this.#woken();
    clearInterval(telling);
    for (const line of this.#idle) line.close();
    tell(this.#untold);
  }

  async #sendDue(): Promise<void> {
    if (this.#pace === null || this.#left === 0) return this.#woken();
    const { perSecond, lines, restMs } = this.#pace;
    if (this.#running >= lines) return restMs ? rest(restMs) : this.#woken();
    // What is asked as soon as a line is free is due then, and never late.
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
    line ??= new Line(target, ask);
    this.#running += 1;
    this.#untold.push(await line.ask(due));
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
  const sender = new Sender(workerData as What);
  port.on('message', (pace: Pace | null) => sender.goOn(pace));
  await sender.run((answers) => port.postMessage(answers));
  port.close();
}
