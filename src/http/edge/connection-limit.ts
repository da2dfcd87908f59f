import type { Server } from 'node:http';
import { BlockList, isIPv6, type Socket } from 'node:net';
import { clientNetwork } from '../../limits/limits.ts';

/** One network may open at most this part of all connections, so that it cannot take them all. */
const SHARE = 1 / 4;

interface ConnectionLimitOptions {
  /** Maximum number of connections of all networks. */
  readonly connectionsMax: number;
  /** Networks of proxies, which carry the connections of many clients and have no limit. */
  readonly proxies: readonly string[];
  /** Called for each connection that is closed at once. */
  readonly onRefused: (network: string) => void;
}

/** A list of addresses and networks such as `10.0.0.0/8`. */
function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Closes connections at once beyond the maximum of all networks, or beyond the share of one. An
 * idle connection costs nothing but its place, and one machine could take every place.
 */
export function limitConnections(server: Server, options: ConnectionLimitOptions): void {
  const { connectionsMax, proxies, onRefused } = options;
  const networkMax = Math.max(1, Math.floor(connectionsMax * SHARE));
  const unlimited = blockListOf(proxies);
  const open = new Map<string, number>();
  server.maxConnections = connectionsMax;
  server.on('drop', (data) => onRefused(clientNetwork(data?.remoteAddress ?? 'nowhere')));
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = 'nowhere' } = socket;
    if (unlimited.check(remoteAddress, isIPv6(remoteAddress) ? 'ipv6' : 'ipv4')) return;
    const network = clientNetwork(remoteAddress);
    const count = open.get(network) ?? 0;
    if (count >= networkMax) {
      onRefused(network);
      socket.destroy();
      return;
    }
    open.set(network, count + 1);
    socket.once('close', () => {
      const left = (open.get(network) ?? 0) - 1;
      if (left > 0) open.set(network, left);
      else open.delete(network);
    });
  });
}
