import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';

/** Network conditions of a proxy; none by default. */
export interface TcpConditions {
  /** Latency of each direction. */
  readonly latencyMs?: number;
  /** Bandwidth of each direction. */
  readonly bytesPerSecond?: number;
  /** Maximum bytes of one write. */
  readonly sliceBytes?: number;
}

/** Direction of bytes: `out` to the server, `back` to the client. */
export type Direction = 'out' | 'back';

/** A TCP proxy between client and server that a test can cut, freeze or slow down. */
export interface TcpProxy {
  /** The URL of the server through the proxy. */
  readonly url: string;
  /** Destroys all connections and rejects new ones; `false` accepts them again. */
  cut(isCut: boolean): void;
  /** Redirects to another server, like a failover address; destroys all connections. */
  redirectTo(url: string): void;
  /** Resets all connections; new ones are accepted. */
  reset(): void;
  /**
   * Drops all bytes silently: connections stay open and new ones are accepted. All of them are lost
   * for ever, as when a firewall forgets them. TCP never loses only some bytes of a connection.
   */
  freeze(): void;
  /** Forwards the bytes of new connections again. */
  thaw(): void;
  /** Sends FIN to the clients and keeps forwarding their bytes. */
  halfClose(): void;
  /** Sets the network conditions from now on. */
  set(conditions: TcpConditions): void;
  /** Calls a listener with all forwarded bytes; connections are numbered. */
  onBytes(listener: (bytes: Buffer, direction: Direction, connection: number) => void): void;
  /** The number of connections. */
  count(): number;
}

type Test = Pick<typeof t, 'teardown'>;
type Listener = Parameters<TcpProxy['onBytes']>[0];

/** One client and its connection to the server. */
interface ProxiedConnection {
  readonly near: Socket;
  readonly far: Socket;
  readonly number: number;
  /** True after a freeze: its bytes are dropped. */
  isLost: boolean;
}

class ProxyState {
  conditions: TcpConditions = {};
  isCut = false;
  isFrozen = false;
  readonly pairs = new Set<ProxiedConnection>();
  readonly listeners: Listener[] = [];
  /** Connection ends that arrived while frozen, delivered on thaw as by a network. */
  readonly delayedEnds: (() => void)[] = [];

  /** Forwards bytes from one end to the other, in order. */
  join(pair: ProxiedConnection, direction: Direction): void {
    const [from, to] = direction === 'out' ? [pair.near, pair.far] : [pair.far, pair.near];
    let last = Promise.resolve();
    from.on('data', (bytes) => {
      if (pair.isLost) return;
      for (const each of this.listeners) each(bytes, direction, pair.number);
      const { latencyMs = 0, bytesPerSecond, sliceBytes } = this.conditions;
      if (latencyMs === 0 && bytesPerSecond === undefined && sliceBytes === undefined) {
        last = last.then(() => this.#write(pair, to, bytes));
        return;
      }
      const due = performance.now() + latencyMs;
      // Backpressure: the sender must notice the low bandwidth.
      if (bytesPerSecond !== undefined) from.pause();
      last = last
        .then(() => pause(Math.max(0, due - performance.now())))
        .then(() => this.#slowly(pair, to, bytes, bytesPerSecond, sliceBytes ?? 16_384))
        .finally(() => from.resume());
    });
    from.on('error', () => {});
    from.on('end', () => {
      const pass = (): void => void last.then(() => to.end());
      if (this.isFrozen) this.delayedEnds.push(pass);
      else pass();
    });
    from.on('close', () => {
      this.pairs.delete(pair);
      void last.then(() => to.destroy());
    });
  }

  #write(pair: ProxiedConnection, to: Socket, bytes: Buffer): void {
    if (to.writable && !pair.isLost) to.write(bytes);
  }

  async #slowly(
    pair: ProxiedConnection,
    to: Socket,
    bytes: Buffer,
    rate: number | undefined,
    slice: number,
  ): Promise<void> {
    for (let at = 0; at < bytes.length && !to.destroyed; at += slice) {
      const piece = bytes.subarray(at, at + slice);
      this.#write(pair, to, piece);
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

/** Starts a proxy for the server of a URL. */
export async function tcpProxyTo(test: Test, url: string): Promise<TcpProxy> {
  let target = new URL(url);
  const wire = new ProxyState();
  let count = 0;
  const proxy = createServer({ allowHalfOpen: true }, (near) => {
    const options = { host: target.hostname, port: Number(target.port || 5432) };
    const far = connect({ ...options, allowHalfOpen: true });
    const pair = { near, far, number: count++, isLost: wire.isFrozen };
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
    redirectTo: (next) => {
      target = new URL(next);
      wire.destroy('destroy');
    },
    reset: () => wire.destroy('resetAndDestroy'),
    freeze: () => {
      wire.isFrozen = true;
      for (const pair of wire.pairs) pair.isLost = true;
    },
    thaw: () => {
      wire.isFrozen = false;
      for (const pass of wire.delayedEnds.splice(0)) pass();
    },
    halfClose: () => {
      for (const { near } of wire.pairs) near.end();
    },
    set: (conditions) => {
      wire.conditions = conditions;
    },
    onBytes: (listener) => {
      wire.listeners.push(listener);
    },
    count: () => wire.pairs.size,
  };
}
