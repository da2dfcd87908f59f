import { readFile } from 'node:fs/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { answerOf, Caller } from './sockets.ts';

/** Clients that begin a request and send the rest of it byte by byte. */
export interface Loris {
  readonly port: number;
  readonly count: number;
  /** What each of them sends at once, and then ten times a second. */
  readonly first: string;
  readonly drip: string;
}

/** What became of them. */
export interface Dropped {
  /** Until the last of them was dropped. */
  readonly ms: number;
  /** The answers that they got, each once. */
  readonly statuses: readonly number[];
}

/** In a thread of its own, so that others who measure do not wait for it. */
export const loris = (how: Loris): Promise<Dropped> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: how });
    worker.once('message', resolve);
    worker.once('error', reject);
  });

async function drip({ port, count, first, drip }: Loris): Promise<Dropped> {
  const begun = performance.now();
  const callers = Array.from({ length: count }, () => new Caller({ teardown: () => {} }, port));
  for (const { socket } of callers) socket.write(first);
  const dripping = setInterval(() => {
    for (const { socket } of callers) if (socket.writable) socket.write(drip);
  }, 100);
  const texts = await Promise.all(callers.map((caller) => caller.ended()));
  clearInterval(dripping);
  const statuses = new Set(texts.map((text) => answerOf(text).status));
  return { ms: performance.now() - begun, statuses: [...statuses] };
}

if (parentPort !== null && workerData !== null) {
  parentPort.postMessage(await drip(workerData as Loris));
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
