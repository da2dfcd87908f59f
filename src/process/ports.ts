import { ConfigError } from '../config/config.ts';

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
