import { isIP } from 'node:net';

/**
 * Parses a database address. The host may be missing after an account, as libpq accepts it for a
 * socket: `postgres://prices_service@/prices?host=/var/run/postgresql`.
 */
function parsed(text: string): URL | null {
  const whole = URL.parse(text);
  if (whole !== null) return whole;
  const url = URL.parse(text.replace(/@(?=[/?]|$)/, '@localhost'));
  return url !== null && socketOf(url) !== null ? url : null;
}

/** The folder of a socket, from the parameter `host` or an escaped host; null for TCP. */
function socketOf({ hostname, searchParams }: URL): string | null {
  const host = searchParams.get('host') || hostname.replace(/^%2f/i, '/').replaceAll(/%2f/gi, '/');
  return host.startsWith('/') ? host : null;
}

/**
 * The part of a database address without secrets, `host:port/database`, or null for an invalid
 * address. A socket is named by its folder. An unescaped `/`, `?` or `#` in a password ends the
 * authority, so a part of the password would be parsed as the host. A later `@` or `#` reveals
 * this.
 */
export function databaseAddressOf(text: string): string | null {
  const url = parsed(text);
  if (url === null || /[@#]/.test(`${url.pathname}${url.search}${url.hash}`)) return null;
  try {
    for (const part of [url.username, url.password, url.hostname, url.pathname]) {
      decodeURIComponent(part);
    }
  } catch {
    // A malformed percent encoding.
    return null;
  }
  return `${socketOf(url) ?? url.host}${url.pathname}`;
}

/** TLS modes of libpq that check less than the driver does: it treats them as `verify-full`. */
const WEAKER_MODES = ['prefer', 'require', 'verify-ca'];

/** The settings of libpq for TLS, as environment variables. */
type TlsVariables = Readonly<Record<string, string | undefined>>;

/** The TLS mode that an address or PGSSLMODE names; null if neither does. */
function tlsModeOf(url: URL, { PGSSLMODE }: TlsVariables): string | null {
  const { searchParams } = url;
  if (searchParams.has('ssl') || searchParams.has('uselibpqcompat')) return null;
  return searchParams.get('sslmode') || PGSSLMODE || null;
}

/**
 * An address for the driver, with the meaning that libpq gives to PGSSLMODE and PGSSLROOTCERT. A
 * known CA without a mode means `verify-full`, and so do the weaker modes. A socket has no TLS.
 */
export function driverAddress(text: string, env: TlsVariables): string {
  const url = parsed(text);
  if (url === null) return text;
  const { searchParams } = url;
  const mode = tlsModeOf(url, env);
  const root = searchParams.get('sslrootcert') || env['PGSSLROOTCERT'] || '';
  // The certificates that Node knows.
  if (root === 'system' || root === '') searchParams.delete('sslrootcert');
  else searchParams.set('sslrootcert', root);
  if (socketOf(url) !== null) {
    for (const each of ['sslrootcert', 'ssl']) searchParams.delete(each);
    // Without a mode the driver would take that of PGSSLMODE.
    searchParams.set('sslmode', 'disable');
  } else if (mode !== null || root !== '') {
    const isWeaker = mode === null || WEAKER_MODES.includes(mode);
    if (!searchParams.has('ssl') && !searchParams.has('uselibpqcompat')) {
      searchParams.set('sslmode', isWeaker ? 'verify-full' : mode);
    }
    // The driver would use TLS for a root certificate alone.
    if (mode === 'disable') searchParams.delete('sslrootcert');
  }
  return url.href;
}

/** A line about a TLS mode that the driver makes stricter; null for any other address. */
export function tlsNotice(name: string, text: string, env: TlsVariables): string | null {
  const url = parsed(text);
  const mode = url === null || socketOf(url) !== null ? null : tlsModeOf(url, env);
  if (mode === null || !WEAKER_MODES.includes(mode)) return null;
  return (
    `${name}: sslmode=${mode} is used as verify-full: the connection is encrypted, and the ` +
    'certificate of the server is checked; write sslmode=verify-full, and for a CA of your own ' +
    'sslrootcert=<file> or PGSSLROOTCERT (docs/managed-postgresql.md)'
  );
}

/** True for several servers, or a choice between them, as libpq accepts them. */
const namesServers = (text: string): boolean => {
  const [, hosts = '', query = ''] =
    /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#@]*)[^?]*\??(.*)$/s.exec(text) ?? [];
  const parameters = new URLSearchParams(query);
  return (
    `${hosts}${parameters.get('host')}`.includes(',') || parameters.has('target_session_attrs')
  );
};

/** Hosts for which plain http is allowed. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** The fault of an address for outgoing requests; null if it is valid. */
export function addressFault(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not an address';
  if (url.username !== '' || url.password !== '') return 'must not name a user or password';
  const isSafe = url.protocol === 'https:' || LOOPBACK.includes(url.hostname);
  return isSafe ? null : 'must be https, or http on this machine';
}

/** The fault of a database address; null if it is valid. */
export function databaseAddressFault(text: string): string | null {
  if (namesServers(text)) {
    return (
      'names several servers, or target_session_attrs; a process uses one address: let HAProxy, ' +
      'DNS or the endpoint of a cloud choose the server (docs/operations.md, "Standbys and ' +
      'failover")'
    );
  }
  if (/^postgres(ql)?:\/\//.test(text) && databaseAddressOf(text) !== null) return null;
  return (
    'is not an address like postgres://user:password@host:5432/database; reserved characters ' +
    'in the password, such as @ / : ? # %, must be percent-encoded'
  );
}

/** The fault of a list of networks, each an address or `address/bits`; null if it is valid. */
export function networksFault(text: string): string | null {
  const wrong = text.split(',').find((each) => {
    const [address = '', bits] = each.split('/');
    const bitsMax = { 4: 32, 6: 128 }[isIP(address)] ?? 0;
    return bitsMax === 0 || (bits !== undefined && !(Number(bits) >= 1 && Number(bits) <= bitsMax));
  });
  return wrong === undefined ? null : 'is not a list of networks such as 10.0.0.0/8,fd00::/8';
}
