import type { Worker } from 'node:cluster';

/** What Node's cluster sends a worker with a new connection, and what the worker answers. */
interface Message {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/** A connection below Node's `Socket`: what is sent to another process with nothing lost. */
export interface Handle {
  readStop(): void;
  close(): void;
}

type Send = (message: Message, handle?: Handle, ...rest: unknown[]) => boolean;

/**
 * Calls once a worker has ended and all that it said was heard: what it took before is nobody
 * else's. Node itself tells of no end of its channel while a connection waits to be taken.
 */
export function onceHeardOut({ process: child }: Worker, done: () => void): void {
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
  const send = child.send.bind(child) as unknown as Send;
  const noting: Send = (message, handle, ...rest) => {
    if (message.act === 'newconn' && message.seq !== undefined && handle) {
      underWay.set(message.seq, handle);
    }
    return send(message, handle, ...rest);
  };
  child.send = noting as unknown as typeof child.send;
  // One that it does not take goes to the next worker.
  child.on('internalMessage', ({ ack }: Message) => {
    if (ack !== undefined) underWay.delete(ack);
  });
  onceHeardOut(worker, () => {
    for (const handle of underWay.values()) found(handle);
    underWay.clear();
  });
}
