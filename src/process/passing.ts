import type { Worker } from 'node:cluster';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** The message of Node's cluster with a new connection, and the answer of the worker. */
interface NodeMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/** A connection below Node's `Socket`: what is sent to another process with nothing lost. */
interface Handle {
  readStop(): void;
  close(): void;
}

type NodeSend = (message: NodeMessage, handle?: Handle, ...rest: unknown[]) => boolean;

/**
 * Calls `done` once a worker has ended and all its messages were read: only then is it known which
 * connections it took. Node reports no end of its channel while a connection waits to be taken.
 */
function onceHeardOut({ process: child }: Worker, done: () => void): void {
  const look = (): void => {
    if (child.connected) setImmediate(look);
    else done();
  };
  child.once('exit', () => setImmediate(look));
}

/**
 * Finds connections that were on their way to a worker when it ended. Node keeps such a connection
 * open without anybody at its end, and its client would wait for an answer for ever.
 */
export function whatIsUnderWay(worker: Worker, found: (handle: Handle) => void): void {
  const { process: child } = worker;
  const underWay = new Map<number, Handle>();
  const send = child.send.bind(child) as unknown as NodeSend;
  const noting: NodeSend = (message, handle, ...rest) => {
    if (message.act === 'newconn' && message.seq !== undefined && handle) {
      underWay.set(message.seq, handle);
    }
    return send(message, handle, ...rest);
  };
  child.send = noting as unknown as typeof child.send;
  // One that it does not take goes to the next worker.
  child.on('internalMessage', ({ ack }: NodeMessage) => {
    if (ack !== undefined) underWay.delete(ack);
  });
  onceHeardOut(worker, () => {
    for (const handle of underWay.values()) found(handle);
    underWay.clear();
  });
}

/** What processes tell each other of connections that go from one of them to another. */
interface Message {
  /** Of one that was left, one to be taken, one that was taken; and that a worker has to go. */
  readonly act?: 'left' | 'take' | 'taken' | 'retire';
  readonly seq?: number;
  /** True if a request has come over it before. */
  readonly isUsed?: boolean;
  /** How many had no room for it. */
  readonly refusals?: number;
}

type Send = (message: Message, handle?: Handle, options?: object, done?: () => void) => boolean;

interface Inner {
  _handle: Handle | null;
}

/** A server as Node's cluster sees it. */
type Listening = Server & {
  readonly _handle: { onconnection(error: number, handle: Handle): void } | null;
  readonly _connections: number;
};

const nothing = (): void => {};

/** The side of a worker: it takes connections, and leaves its own to others when it retires. */
export class Heritage {
  #isRetiring = false;
  readonly #leaving = new Set<Promise<void>>();
  /** Connections that were used by another worker and are not yet used here. */
  readonly #kept = new WeakSet<Socket>();

  /** True if others take what this process leaves. */
  get hasHeirs(): boolean {
    return this.#isRetiring && process.connected;
  }

  /** Hears from the first process. */
  listen(retire: () => void): void {
    process.on('message', ({ act }: Message) => {
      if (act !== 'retire') return;
      this.#isRetiring = true;
      retire();
    });
  }

  /** Has the server go on with connections that another worker has left. */
  takeFor(server: Server): void {
    let isUsed = false;
    process.on('message', (message: Message, handle?: Handle) => {
      if (message.act !== 'take' || !handle) return;
      (process.send as Send)({ act: 'taken', seq: message.seq ?? 0 });
      const { _handle: listener, _connections: count, maxConnections } = server as Listening;
      const { isUsed: wasUsed = false, refusals = 0 } = message;
      // One that came too late goes on further, and so does one for which there is no room.
      if (!listener) return this.#send(handle, wasUsed, refusals);
      if (maxConnections && count >= maxConnections) {
        return this.#send(handle, wasUsed, refusals + 1);
      }
      isUsed = wasUsed;
      // As Node hands on what the first process accepts: the server hears of it at once.
      listener.onconnection(0, handle);
      isUsed = false;
    });
    server.on('connection', (socket) => {
      if (!isUsed) return;
      this.#kept.add(socket);
      socket.setTimeout(server.keepAliveTimeout);
    });
    server.on('request', ({ socket }) => {
      if (this.#kept.delete(socket)) socket.setTimeout(server.timeout);
    });
  }

  /** True if a connection waits for its next request, not for its first as Node thinks. */
  isKept(socket: Socket): boolean {
    return this.#kept.has(socket) && socket.bytesRead === 0;
  }

  /** Gives a connection away on which nothing is under way: what comes next another one reads. */
  leave(socket: Socket): void {
    const inner = socket as unknown as Inner;
    const { _handle: handle } = inner;
    if (!handle || !this.hasHeirs) return;
    const isUsed = socket.bytesRead > 0 || this.#kept.has(socket);
    handle.readStop();
    // Without it the end of the socket is not that of the connection.
    inner._handle = null;
    socket.destroy();
    this.#send(handle, isUsed, 0);
  }

  /** Waits until all that was left is on its way. */
  async settled(): Promise<void> {
    await Promise.all(this.#leaving);
  }

  #send(handle: Handle, isUsed: boolean, refusals: number): void {
    const sent = new Promise<void>((resolve) => {
      (process.send as Send)({ act: 'left', isUsed, refusals }, handle, {}, resolve);
    }).then(() => {
      handle.close();
      this.#leaving.delete(sent);
    });
    this.#leaving.add(sent);
  }
}

/** Tells a worker to end, and to leave its connections to others. */
export function retire(worker: Worker): void {
  (worker.send.bind(worker) as unknown as Send)({ act: 'retire' }, undefined, {}, nothing);
}

/** A connection that a worker has left. */
export interface Left {
  readonly handle: Handle;
  /** True if a request has come over it. */
  readonly isUsed: boolean;
  /** How many workers had no room for it. */
  readonly refusals: number;
}

/** Hears of the connections that a worker leaves. */
export function heirless(worker: Worker, found: (left: Left) => void): void {
  worker.on('message', ({ act, isUsed = false, refusals = 0 }: Message, handle: unknown) => {
    if (act === 'left' && handle) found({ handle: handle as Handle, isUsed, refusals });
  });
}

/**
 * Gives a worker connections that others have left. Those that it had not taken when it ended are
 * left once more: their clients would wait for ever.
 */
export function deliveriesTo(worker: Worker, found: (left: Left) => void): (left: Left) => void {
  const underWay = new Map<number, Left>();
  const send = worker.send.bind(worker) as unknown as Send;
  let last = 0;
  worker.on('message', ({ act, seq = 0 }: Message) => {
    if (act !== 'taken') return;
    underWay.get(seq)?.handle.close();
    underWay.delete(seq);
  });
  onceHeardOut(worker, () => {
    for (const left of underWay.values()) found(left);
    underWay.clear();
  });
  return (left) => {
    const { handle, ...how } = left;
    last += 1;
    underWay.set(last, left);
    send({ act: 'take', seq: last, ...how }, handle, {}, nothing);
  };
}
