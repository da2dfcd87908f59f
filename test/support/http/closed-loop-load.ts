import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';

type Test = Pick<typeof t, 'teardown'>;

/** Latencies in milliseconds. */
export interface Times {
  /** The 99th percentile. */
  readonly p99Ms: number;
  readonly longestMs: number;
}

/** The outcome of a closed-loop load. */
export interface LoadTally {
  readonly sent: number;
  /** Descriptions of all answers other than 200. */
  readonly failed: readonly string[];
  readonly before: Times;
  /** Latencies of requests that ended after the mark. */
  readonly since: Times;
}

export interface ClosedLoopLoad {
  /** Waits for this many more answers. */
  next(count: number): Promise<void>;
  /** Starts the second measurement period. */
  mark(): void;
  /** Stops the load after the requests in flight. */
  stop(): Promise<LoadTally>;
}

function timesOf(milliseconds: readonly number[]): Times {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  return { p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0, longestMs: sorted.at(-1) ?? 0 };
}

/** Sends one request; returns the fault of the answer, or null. */
function ask(agent: Agent, port: number, key: string, path: string, body: unknown) {
  return new Promise<string | null>((resolve) => {
    const asking = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        path,
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
      },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        answer.on('error', (error) => resolve(error.message));
        answer.on('end', () => {
          resolve(answer.statusCode === 200 ? null : `${answer.statusCode} ${text.slice(0, 200)}`);
        });
      },
    );
    asking.on('error', (error) => resolve(error.message));
    asking.end(JSON.stringify(body));
  });
}

/** Starts workers that each send requests one after another until stopped. */
export function startClosedLoop(
  test: Test,
  { port, key }: { readonly port: number; readonly key: string },
  questions: readonly (readonly [path: string, body: unknown])[],
  atOnce = 4,
  keepAlive = true,
): ClosedLoopLoad {
  const agent = new Agent({ keepAlive, maxSockets: atOnce });
  test.teardown(() => agent.destroy());
  const times: number[] = [];
  const failed: string[] = [];
  let marked = 0;
  let isOver = false;
  let next = 0;
  const worker = async (): Promise<void> => {
    while (!isOver) {
      const [path, body] = questions[next++ % questions.length] ?? ['', null];
      const begun = performance.now();
      const fault = await ask(agent, port, key, path, body);
      times.push(performance.now() - begun);
      if (fault !== null) failed.push(fault);
    }
  };
  const workers = Array.from({ length: atOnce }, worker);
  const stop = async (): Promise<LoadTally> => {
    isOver = true;
    await Promise.all(workers);
    const [before, since] = [times.slice(0, marked), times.slice(marked)].map(timesOf);
    if (!before || !since) throw new Error('there are two times');
    return { sent: times.length, failed, before, since };
  };
  test.teardown(() => {
    isOver = true;
  });
  return {
    next: async (count) => {
      const goal = times.length + count;
      while (times.length < goal) await pause(5);
    },
    mark: () => {
      marked = times.length;
    },
    stop,
  };
}
