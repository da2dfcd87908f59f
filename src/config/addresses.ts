import { isIP } from 'node:net';

/**
 * The part of a database address without secrets, `host:port/database`, or null for an invalid
 * address. An unescaped `/`, `?` or `#` in a password ends the authority, so a part of the password
 * would be parsed as the host. A later `@` or `#` reveals this.
 */
export function databaseAddressOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || /[@#]/.test(`${url.pathname}${url.search}${url.hash}`)) return null;
  try {
    for (const part of [url.username, url.password, url.hostname, url.pathname]) {
      decodeURIComponent(part);
    }
  } catch {
    // A malformed percent encoding.
    return null;
  }
  return `${url.host}${url.pathname}`;
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
