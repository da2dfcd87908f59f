import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';

/** What a wire does to the bytes that it passes on; nothing of it where it is not said. */
export interface Trouble {
  /** How long each byte is under way, in each direction. */
  readonly latencyMs?: number;
  /** How many bytes a second it passes on, in each direction. */
  readonly bytesPerSecond?: number;
  /** The most bytes that it passes on in one piece. */
  readonly sliceBytes?: number;
}

/** Where bytes of a connection go: to the server, or back to the client. */
export type Direction = 'out' | 'back';

/** A stretch of wire between a client and a server, which a test can cut, freeze or make slow. */
export interface Wire {
  /** The address of the server as seen through the wire. */
  readonly url: string;
  /** Ends every connection and lets nobody in, or lets in again. */
  cut(isCut: boolean): void;
  /** Leads to another server, like an address that moves in a failover; ends every connection. */
  leadTo(url: string): void;
  /** Ends every connection with a reset; who comes next is let in. */
  reset(): void;
  /** Passes nothing on, and tells nobody: connections stay open, and new ones are taken. */
  freeze(): void;
  /** Passes on again, on new connections and old ones; what came meanwhile is lost. */
  thaw(): void;
  /** Tells the clients that the server sends no more, and goes on passing what they send. */
  halfClose(): void;
  /** Makes the wire slow from now on. */
  set(trouble: Trouble): void;
  /** Hears all that is passed on, as it comes; each connection has its number. */
  hear(listener: (bytes: Buffer, direction: Direction, connection: number) => void): void;
  /** How many connections there are. */
  count(): number;
}

type Test = Pick<typeof t, 'teardown'>;
type Listener = Parameters<Wire['hear']>[0];

/** One client and its connection to the server. */
interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  readonly number: number;
}

class TroubledWire {
  trouble: Trouble = {};
  isCut = false;
  isFrozen = false;
  readonly pairs = new Set<Pair>();
  readonly listeners: Listener[] = [];
  /** Ends of connections that came while it was frozen: a network brings them later. */
  readonly heldEnds: (() => void)[] = [];

  /** Passes bytes on from one end to the other, in their order. */
  join(pair: Pair, direction: Direction): void {
    const [from, to] = direction === 'out' ? [pair.near, pair.far] : [pair.far, pair.near];
    let last = Promise.resolve();
    from.on('data', (bytes) => {
      if (this.isFrozen) return;
      for (const each of this.listeners) each(bytes, direction, pair.number);
      const { latencyMs = 0, bytesPerSecond, sliceBytes } = this.trouble;
      if (latencyMs === 0 && bytesPerSecond === undefined && sliceBytes === undefined) {
        last = last.then(() => this.#write(to, bytes));
        return;
      }
      const due = performance.now() + latencyMs;
      // No more is taken in before this is passed on: who sends feels that the wire is slow.
      if (bytesPerSecond !== undefined) from.pause();
      last = last
        .then(() => pause(Math.max(0, due - performance.now())))
        .then(() => this.#slowly(to, bytes, bytesPerSecond, sliceBytes ?? 16_384))
        .finally(() => from.resume());
    });
    from.on('error', () => {});
    from.on('end', () => {
      const pass = (): void => void last.then(() => to.end());
      if (this.isFrozen) this.heldEnds.push(pass);
      else pass();
    });
    from.on('close', () => {
      this.pairs.delete(pair);
      void last.then(() => to.destroy());
    });
  }

  #write(to: Socket, bytes: Buffer): void {
    if (to.writable && !this.isFrozen) to.write(bytes);
  }

  async #slowly(to: Socket, bytes: Buffer, rate: number | undefined, slice: number): Promise<void> {
    for (let at = 0; at < bytes.length && !to.destroyed; at += slice) {
      const piece = bytes.subarray(at, at + slice);
      this.#write(to, piece);
      await pause(rate === undefined ? 0 : (piece.length / rate) * 1_000);
    }
  }

  destroy(how: 'destroy' | 'resetAndDestroy'): void {
    for (const { near, far } of this.pairs) {
      near[how]();
      far[how]();
    }
  }
}

/** A proxy before a server that an address names. */
export async function wireTo(test: Test, url: string): Promise<Wire> {
  let target = new URL(url);
  const wire = new TroubledWire();
  let made = 0;
  const proxy = createServer({ allowHalfOpen: true }, (near) => {
    const options = { host: target.hostname, port: Number(target.port || 5432) };
    const pair = { near, far: connect({ ...options, allowHalfOpen: true }), number: made++ };
    wire.pairs.add(pair);
    wire.join(pair, 'out');
    wire.join(pair, 'back');
    if (wire.isCut) near.destroy();
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  test.teardown(() => {
    wire.destroy('destroy');
    proxy.close();
  });
  const through = new URL(url);
  through.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return {
    url: through.href,
    cut: (cut) => {
      wire.isCut = cut;
      wire.isFrozen = false;
      if (cut) wire.destroy('destroy');
    },
    leadTo: (next) => {
      target = new URL(next);
      wire.destroy('destroy');
    },
    reset: () => wire.destroy('resetAndDestroy'),
    freeze: () => {
      wire.isFrozen = true;
    },
    thaw: () => {
      wire.isFrozen = false;
      for (const pass of wire.heldEnds.splice(0)) pass();
    },
    halfClose: () => {
      for (const { near } of wire.pairs) near.end();
    },
    set: (trouble) => {
      wire.trouble = trouble;
    },
    hear: (listener) => {
      wire.listeners.push(listener);
    },
    count: () => wire.pairs.size,
  };
}
