import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { answerOf, Caller } from './sockets.ts';

/** Clients that begin a request and send the rest of it byte by byte. */
export interface Loris {
  readonly port: number;
  readonly count: number;
  /** What each of them sends at once, and then ten times a second. */
  readonly first: string;
  readonly drip: string;
  /** They come one after another in so long; 0 for all of them at once. */
  readonly comeInMs: number;
}

/** What became of them. */
export interface Dropped {
  /** How long the one was held that was held longest. */
  readonly ms: number;
  /** The answers that they got, each once. */
  readonly statuses: readonly number[];
}

/**
 * A thread of their own, so that others who measure do not wait for them; it is ready when this
 * resolves.
 * @returns what lets them begin
 */
export async function loris(how: Loris): Promise<() => Promise<Dropped>> {
  const worker = new Worker(new URL(import.meta.url), { workerData: how });
  await once(worker, 'message');
  return async () => {
    worker.postMessage('begin');
    const [dropped] = await once(worker, 'message');
    return dropped as Dropped;
  };
}

/** Each client sends its bytes at times of its own: clients know nothing of each other. */
const PHASES = 10;
const DRIP_MS = 100;

async function endOf(caller: Caller): Promise<{ ms: number; status: number }> {
  const begun = performance.now();
  // Looking again and again whether it is closed would cost the machine more than the fault does.
  await caller.closed;
  return { ms: performance.now() - begun, status: answerOf(caller.text).status };
}

async function dripAll({ port, count, first, drip, comeInMs }: Loris): Promise<Dropped> {
  const callers: Caller[] = [];
  let phase = 0;
  const dripping = setInterval(() => {
    phase = (phase + 1) % PHASES;
    for (const [at, { socket }] of callers.entries()) {
      if (at % PHASES === phase && socket.writable) socket.write(drip);
    }
  }, DRIP_MS / PHASES);
  const ends: ReturnType<typeof endOf>[] = [];
  for (let at = 0; at < count; at += 1) {
    const caller = new Caller({ teardown: () => {} }, port);
    caller.socket.write(first);
    callers.push(caller);
    ends.push(endOf(caller));
    if (comeInMs > 0) await pause(comeInMs / count);
  }
  const all = await Promise.all(ends);
  clearInterval(dripping);
  const statuses = [...new Set(all.map(({ status }) => status))];
  return { ms: Math.max(...all.map(({ ms }) => ms)), statuses };
}

if (parentPort !== null && workerData !== null) {
  const port = parentPort;
  port.postMessage('ready');
  await once(port, 'message');
  port.postMessage(await dripAll(workerData as Loris));
  port.close();
}

const ESTABLISHED = '01';
const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16);

/** What is known of the connection of a client to a service. */
export interface Held {
  /** Whether the service has not let it go. */
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
