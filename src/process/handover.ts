import type { Worker } from 'node:cluster';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Internal messages of Node's cluster: a new connection, and the worker's acknowledgement. */
interface NodeMessage {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/** The handle below a `Socket`. Sending it to another process loses no bytes. */
interface Handle {
  readStop(): void;
  close(): void;
}

type NodeSend = (message: NodeMessage, handle?: Handle, ...rest: unknown[]) => boolean;

/**
 * Calls `done` after a worker has exited and all its messages were read, when all acknowledgements
 * are known. Node does not report a disconnect while a connection is unacknowledged.
 */
function afterLastMessage({ process: child }: Worker, done: () => void): void {
  const check = (): void => {
    if (child.connected) setImmediate(check);
    else done();
  };
  child.once('exit', () => setImmediate(check));
}

/**
 * Finds new connections that were in transit to a worker when it exited. Node keeps such a
 * connection open without a reader, so its client would wait forever.
 */
export function onUndelivered(worker: Worker, found: (handle: Handle) => void): void {
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
  // Node sends a connection that the worker declines to the next worker.
  child.on('internalMessage', ({ ack }: NodeMessage) => {
    if (ack !== undefined) underWay.delete(ack);
  });
  afterLastMessage(worker, () => {
    for (const handle of underWay.values()) found(handle);
    underWay.clear();
  });
}

/** Messages between the primary and its workers about connections that change owners. */
interface HandoverMessage {
  /**
   * `retire`: the worker must stop. `handOver`: a worker gives up a connection. `accept`: another
   * worker must serve it. `accepted`: its acknowledgement.
   */
  readonly act?: 'handOver' | 'accept' | 'accepted' | 'retire';
  readonly seq?: number;
  /** True if the connection had a request before. */
  readonly isUsed?: boolean;
  /** Number of workers that were at their connection limit. */
  readonly refusals?: number;
}

type Send = (
  message: HandoverMessage,
  handle?: Handle,
  options?: object,
  done?: () => void,
) => boolean;

interface Inner {
  _handle: Handle | null;
}

/** Undocumented fields of a listening server. */
type Listening = Server & {
  readonly _handle: { onconnection(error: number, handle: Handle): void } | null;
  readonly _connections: number;
};

const nothing = (): void => {};

/** Worker side: accepts connections of other workers, and hands over its own when it retires. */
export class WorkerHandover {
  #isRetiring = false;
  readonly #sending = new Set<Promise<void>>();
  /** Connections with requests in another worker and none here yet. */
  readonly #accepted = new WeakSet<Socket>();

  /** True if other workers take over the connections of this one. */
  get isActive(): boolean {
    return this.#isRetiring && process.connected;
  }

  /** Calls `retire` when the primary process retires this worker. */
  onRetire(retire: () => void): void {
    process.on('message', ({ act }: HandoverMessage) => {
      if (act !== 'retire') return;
      this.#isRetiring = true;
      retire();
    });
  }

  /** Lets the server serve connections of retired workers. */
  acceptFor(server: Server): void {
    let isUsed = false;
    process.on('message', (message: HandoverMessage, handle?: Handle) => {
      if (message.act !== 'accept' || !handle) return;
      (process.send as Send)({ act: 'accepted', seq: message.seq ?? 0 });
      const { _handle: listener, _connections: count, maxConnections } = server as Listening;
      const { isUsed: wasUsed = false, refusals = 0 } = message;
      // Without a listener, or at the connection limit, the connection goes to another worker.
      if (!listener) return this.#send(handle, wasUsed, refusals);
      if (maxConnections && count >= maxConnections) {
        return this.#send(handle, wasUsed, refusals + 1);
      }
      isUsed = wasUsed;
      // Node's cluster does the same with a new connection; the server emits it synchronously.
      listener.onconnection(0, handle);
      isUsed = false;
    });
    server.on('connection', (socket) => {
      if (!isUsed) return;
      this.#accepted.add(socket);
      socket.setTimeout(server.keepAliveTimeout);
    });
    server.on('request', ({ socket }) => {
      if (this.#accepted.delete(socket)) socket.setTimeout(server.timeout);
    });
  }

  /** True if a connection awaits a further request, where Node expects the first. */
  isAwaitingRequest(socket: Socket): boolean {
    return this.#accepted.has(socket) && socket.bytesRead === 0;
  }

  /** Hands over an idle connection: another worker reads its next bytes. */
  send(socket: Socket): void {
    const inner = socket as unknown as Inner;
    const { _handle: handle } = inner;
    if (!handle || !this.isActive) return;
    const isUsed = socket.bytesRead > 0 || this.#accepted.has(socket);
    handle.readStop();
    // A socket without a handle does not close the connection when it is destroyed.
    inner._handle = null;
    socket.destroy();
    this.#send(handle, isUsed, 0);
  }

  /** Waits until all connections are sent. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending);
  }

  #send(handle: Handle, isUsed: boolean, refusals: number): void {
    const sent = new Promise<void>((resolve) => {
      (process.send as Send)({ act: 'handOver', isUsed, refusals }, handle, {}, resolve);
    }).then(() => {
      handle.close();
      this.#sending.delete(sent);
    });
    this.#sending.add(sent);
  }
}

/** Signals a worker to stop and to hand over its connections. */
export function retire(worker: Worker): void {
  (worker.send.bind(worker) as unknown as Send)({ act: 'retire' }, undefined, {}, nothing);
}

/** A connection that a worker handed over. */
export interface HandedOver {
  readonly handle: Handle;
  /** True if the connection had a request. */
  readonly isUsed: boolean;
  /** Number of workers that were at their connection limit. */
  readonly refusals: number;
}

/** Calls `found` for each connection that a worker hands over. */
export function onHandedOver(worker: Worker, found: (connection: HandedOver) => void): void {
  worker.on(
    'message',
    ({ act, isUsed = false, refusals = 0 }: HandoverMessage, handle: unknown) => {
      if (act === 'handOver' && handle) found({ handle: handle as Handle, isUsed, refusals });
    },
  );
}

/**
 * Returns a function that sends handed-over connections to a worker. Connections that the worker
 * has not accepted when it exits are passed to `undelivered`.
 */
export function connectionSender(
  worker: Worker,
  undelivered: (connection: HandedOver) => void,
): (connection: HandedOver) => void {
  const underWay = new Map<number, HandedOver>();
  const send = worker.send.bind(worker) as unknown as Send;
  let last = 0;
  worker.on('message', ({ act, seq = 0 }: HandoverMessage) => {
    if (act !== 'accepted') return;
    underWay.get(seq)?.handle.close();
    underWay.delete(seq);
  });
  afterLastMessage(worker, () => {
    for (const connection of underWay.values()) undelivered(connection);
    underWay.clear();
  });
  return (connection) => {
    const { handle, ...how } = connection;
    last += 1;
    underWay.set(last, connection);
    send({ act: 'accept', seq: last, ...how }, handle, {}, nothing);
  };
}
