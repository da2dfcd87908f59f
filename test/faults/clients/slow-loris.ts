import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { answerOf, Caller } from '../../support/http/sockets.ts';

/** Clients that begin a request and send the rest of it byte by byte. */
export interface Loris {
  readonly count: number;
  /** What each of them sends at once, and then again and again. */
  readonly first: string;
  readonly drip: string;
}

/** When they come and send: one after another in so long, or in one instant for 0. */
export interface Pace {
  readonly port: number;
  readonly comeInMs: number;
  readonly dripMs: number;
}

/** What became of clients of one kind. */
export interface Dropped {
  /** How long the one was held that was held longest. */
  readonly ms: number;
  /** The answers that they got, each once. */
  readonly statuses: readonly number[];
}

/** Two kinds at the same time, and what becomes of each. */
type Two<T> = readonly [T, T];

interface What {
  readonly pace: Pace;
  readonly kinds: Two<Loris>;
}

/**
 * A thread of their own, so that others who measure do not wait for them, and one for all kinds:
 * slow clients have machines of their own, and must not take every core of this one. It is ready
 * when this resolves.
 * @returns what lets them begin
 */
export async function loris(pace: Pace, kinds: Two<Loris>): Promise<() => Promise<Two<Dropped>>> {
  const workerData: What = { pace, kinds };
  const worker = new Worker(new URL(import.meta.url), { workerData });
  await once(worker, 'message');
  return async () => {
    worker.postMessage('begin');
    const [dropped] = await once(worker, 'message');
    return dropped as Two<Dropped>;
  };
}

interface Slow {
  readonly caller: Caller;
  readonly drip: string;
}

/** Each client sends its bytes at times of its own: clients know nothing of each other. */
function dripAll(clients: readonly Slow[], dripMs: number): NodeJS.Timeout {
  const phases = dripMs / 10;
  let phase = 0;
  return setInterval(() => {
    phase = (phase + 1) % phases;
    for (let at = phase; at < clients.length; at += phases) {
      const { caller, drip } = clients[at] as Slow;
      if (caller.socket.writable) caller.socket.write(drip);
    }
  }, 10);
}

async function endOf(caller: Caller): Promise<{ ms: number; status: number }> {
  const begun = performance.now();
  // Looking again and again whether it is closed would cost the machine more than the fault does.
  await caller.closed;
  return { ms: performance.now() - begun, status: answerOf(caller.text).status };
}

async function comeAll({ pace, kinds }: What): Promise<readonly Dropped[]> {
  const clients: Slow[] = [];
  const dripping = dripAll(clients, pace.dripMs);
  const ends = kinds.map((): ReturnType<typeof endOf>[] => []);
  const most = Math.max(...kinds.map(({ count }) => count));
  for (let at = 0; at < most; at += 1) {
    for (const [kind, { count, first, drip }] of kinds.entries()) {
      if (at >= count) continue;
      const caller = new Caller({ teardown: () => {} }, pace.port);
      caller.socket.write(first);
      clients.push({ caller, drip });
      ends[kind]?.push(endOf(caller));
    }
    if (pace.comeInMs > 0) await pause(pace.comeInMs / most);
  }
  const all = await Promise.all(ends.map((each) => Promise.all(each)));
  clearInterval(dripping);
  return all.map((each) => ({
    ms: Math.max(...each.map(({ ms }) => ms)),
    statuses: [...new Set(each.map(({ status }) => status))],
  }));
}

if (parentPort !== null && workerData !== null) {
  const port = parentPort;
  port.postMessage('ready');
  await once(port, 'message');
  port.postMessage(await comeAll(workerData as What));
  port.close();
}

const ESTABLISHED = '01';
const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16);

/** What is known of the connection of a client to a service. */
export interface Held {
  /** True if the service has not let it go. */
  readonly isOpen: boolean;
  /** Bytes that the service has sent and the client has not read. */
  readonly unread: number;
}

/**
 * The connections to a port of this machine, as the system knows them, by the port of the client:
 * one that does not read learns of nothing.
 */
export async function connectionsTo(port: number): Promise<ReadonlyMap<number, Held>> {
  const lines = (await readFile('/proc/net/tcp', 'utf8')).trim().split('\n').slice(1);
  const held = new Map<number, Held>();
  const add = (client: number, isOpen: boolean, unread = 0): void => {
    const known = held.get(client) ?? { isOpen: false, unread: 0 };
    held.set(client, { isOpen: known.isOpen || isOpen, unread: known.unread + unread });
  };
  for (const line of lines) {
    const [, own, other, state, queues = ''] = line.trim().split(/\s+/);
    const [sent, received] = queues.split(':').map((each) => Number.parseInt(each, 16));
    if (portOf(own) === port) add(portOf(other), state === ESTABLISHED, sent);
    else if (portOf(other) === port) add(portOf(own), false, received);
  }
  return held;
}
