import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { answerOf, RawConnection } from '../../support/http/sockets.ts';

/** Clients that start a request and send the rest byte by byte. */
export interface SlowClients {
  readonly count: number;
  /** The bytes that each client sends first, and then repeatedly. */
  readonly first: string;
  readonly drip: string;
}

/** Timing: the clients connect within `arrivalMs`, all at once for 0. */
export interface ArrivalPace {
  readonly port: number;
  readonly arrivalMs: number;
  readonly dripMs: number;
}

/** The outcome of the clients of one kind. */
export interface ClosedSlowClients {
  /** The longest time that a connection stayed open. */
  readonly ms: number;
  /** The distinct statuses of their answers. */
  readonly statuses: readonly number[];
}

/** A value for each of two kinds of clients. */
type Pair<T> = readonly [T, T];

interface SlowTask {
  readonly pace: ArrivalPace;
  readonly kinds: Pair<SlowClients>;
}

/**
 * Starts one thread for all slow clients: they must neither delay the measuring thread nor use
 * every core. Resolves when the thread is ready.
 * @returns a function that starts the clients
 */
export async function slowLoris(
  pace: ArrivalPace,
  kinds: Pair<SlowClients>,
): Promise<() => Promise<Pair<ClosedSlowClients>>> {
  const workerData: SlowTask = { pace, kinds };
  const worker = new Worker(new URL(import.meta.url), { workerData });
  await once(worker, 'message');
  return async () => {
    worker.postMessage('begin');
    const [dropped] = await once(worker, 'message');
    return dropped as Pair<ClosedSlowClients>;
  };
}

interface SlowConnection {
  readonly connection: RawConnection;
  readonly drip: string;
}

/** Sends the bytes of the clients with different phases, as independent clients do. */
function dripAll(clients: readonly SlowConnection[], dripMs: number): NodeJS.Timeout {
  const phases = dripMs / 10;
  let phase = 0;
  return setInterval(() => {
    phase = (phase + 1) % phases;
    for (let at = phase; at < clients.length; at += phases) {
      const { connection, drip } = clients[at] as SlowConnection;
      if (connection.socket.writable) connection.socket.write(drip);
    }
  }, 10);
}

async function endOf(connection: RawConnection): Promise<{ ms: number; status: number }> {
  const begun = performance.now();
  // Polling would cost more CPU than the fault itself.
  await connection.closed;
  return { ms: performance.now() - begun, status: answerOf(connection.text).status };
}

async function runAll({ pace, kinds }: SlowTask): Promise<readonly ClosedSlowClients[]> {
  const clients: SlowConnection[] = [];
  const dripping = dripAll(clients, pace.dripMs);
  const ends = kinds.map((): ReturnType<typeof endOf>[] => []);
  const most = Math.max(...kinds.map(({ count }) => count));
  for (let at = 0; at < most; at += 1) {
    for (const [kind, { count, first, drip }] of kinds.entries()) {
      if (at >= count) continue;
      const connection = new RawConnection({ teardown: () => {} }, pace.port);
      connection.socket.write(first);
      clients.push({ connection, drip });
      ends[kind]?.push(endOf(connection));
    }
    if (pace.arrivalMs > 0) await pause(pace.arrivalMs / most);
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
  port.postMessage(await runAll(workerData as SlowTask));
  port.close();
}

const ESTABLISHED = '01';
const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16);

/** The state of a client connection, as the kernel reports it. */
export interface KernelConnection {
  /** True if the service has not closed it. */
  readonly isOpen: boolean;
  /** Bytes that the service has sent and the client has not read. */
  readonly unread: number;
}

/**
 * The connections to a local port by client port, as the kernel reports them: a client that does
 * not read cannot notice a close.
 */
export async function connectionsTo(port: number): Promise<ReadonlyMap<number, KernelConnection>> {
  const lines = (await readFile('/proc/net/tcp', 'utf8')).trim().split('\n').slice(1);
  const held = new Map<number, KernelConnection>();
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
