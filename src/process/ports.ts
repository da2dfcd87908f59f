import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { type Config, ConfigError } from '../config/config.ts';

/** An address to listen at, and the prefix of its settings. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly prefix: '' | 'METRICS_';
}

/** Names the setting to change when listening at an address has failed. */
export function listenError(error: Error, { host, port, prefix }: ListenAddress): ConfigError {
  const inUse = `${prefix}PORT: ${port} on ${host} is in use by another program`;
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: `${inUse}; ${prefix}PORT=0 selects a free port`,
    EACCES: `${prefix}PORT: ${port} needs rights that this account does not have`,
    EADDRNOTAVAIL: `${prefix}HOST: ${host} is not an address of this machine`,
    ENOTFOUND: `${prefix}HOST: ${host} cannot be resolved`,
  };
  const { code = '' } = error as NodeJS.ErrnoException;
  return new ConfigError(why[code] ?? `${prefix}HOST, ${prefix}PORT: ${error.message}`);
}

async function bind(address: ListenAddress): Promise<Server> {
  const server = createServer().listen(address.port, address.host);
  await once(server, 'listening').catch((error: Error) => {
    throw listenError(error, address);
  });
  return server;
}

/**
 * Binds and releases the ports of the service, so that a port in use is reported before a database
 * is created.
 * @throws ConfigError if a port or host cannot be used
 */
export async function requireFreePorts(config: Config): Promise<void> {
  const addresses: ListenAddress[] = [{ host: config.HOST, port: config.PORT, prefix: '' }];
  const { METRICS_HOST: host, METRICS_PORT: port } = config;
  if (port !== undefined) addresses.push({ host, port, prefix: 'METRICS_' });
  const servers: Server[] = [];
  try {
    // All at once, so that two settings of one port are found too.
    for (const address of addresses) servers.push(await bind(address));
  } finally {
    await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  }
}
