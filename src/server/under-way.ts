import type { Worker } from 'node:cluster';

/** What Node's cluster sends a worker with a new connection, and what the worker answers. */
interface Message {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface Handle {
  close(): void;
}

type Send = (message: Message, handle?: Handle, ...rest: unknown[]) => boolean;

/**
 * Closes connections that were on their way to a worker when it was killed. Node keeps such a
 * connection open without anybody at its end, and its client would wait for an answer for ever.
 */
export function closeWhatIsUnderWay({ process: child }: Worker): void {
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
  child.once('exit', () => {
    for (const handle of underWay.values()) handle.close();
  });
}
