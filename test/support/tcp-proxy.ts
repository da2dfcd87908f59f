import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type t from 'tap';

/** A stretch of wire between a client and a server, which a test can cut or freeze. */
export interface Wire {
  /** The address of the server as seen through the wire. */
  readonly url: string;
  /** Ends every connection and lets nobody in, or lets in again. */
  cut(isCut: boolean): void;
  /** Passes nothing on, and tells nobody: connections stay open. */
  freeze(): void;
  /** How many connections there are. */
  count(): number;
}

type Test = Pick<typeof t, 'teardown'>;

/** A proxy before a server that an address names. */
export async function wireTo(test: Test, url: string): Promise<Wire> {
  const target = new URL(url);
  const ends = new Set<Socket>();
  let isCut = false;
  let isFrozen = false;
  const proxy = createServer((near) => {
    const far = connect({ host: target.hostname, port: Number(target.port || 5432) });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(from);
      from.on('data', (bytes) => isFrozen || to.write(bytes));
      from.on('error', () => {});
      from.on('close', () => {
        ends.delete(from);
        to.destroy();
      });
    }
    if (isCut) near.destroy();
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const destroyAll = () => {
    for (const each of ends) each.destroy();
  };
  test.teardown(() => {
    destroyAll();
    proxy.close();
  });
  const through = new URL(url);
  through.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return {
    url: through.href,
    cut: (cut) => {
      isCut = cut;
      isFrozen = false;
      if (cut) destroyAll();
    },
    freeze: () => {
      isFrozen = true;
    },
    count: () => ends.size / 2,
  };
}
