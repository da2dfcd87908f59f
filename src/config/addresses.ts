import { isIP } from 'node:net';

/**
 * Splits an address with several servers, as in libpq, into one address per server:
 * `postgres://user:password@one:5432,two:5432/prices`.
 */
export function serverAddressesOf(text: string): string[] {
  const [, before = '', hosts = '', after = ''] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  return before === '' ? [text] : hosts.split(',').map((host) => `${before}${host}${after}`);
}

/**
 * The part of a database address without secrets, `host:port/database`, or null for an invalid
 * address. An unescaped `/`, `?` or `#` in a password ends the authority, so a part of the password
 * would be parsed as the host. A later `@` or `#` reveals this.
 */
export function databaseAddressOf(text: string): string | null {
  const urls = serverAddressesOf(text).map((each) => URL.parse(each));
  const hosts: string[] = [];
  for (const url of urls) {
    if (url === null || (urls.length > 1 && url.host === '')) return null;
    if (/[@#]/.test(`${url.pathname}${url.search}${url.hash}`)) return null;
    try {
      for (const part of [url.username, url.password, url.hostname, url.pathname]) {
        decodeURIComponent(part);
      }
    } catch {
      // A malformed percent encoding.
      return null;
    }
    hosts.push(url.host);
  }
  return `${hosts.join()}${urls[0]?.pathname}`;
}

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
  if (!/^postgres(ql)?:\/\//.test(text) || databaseAddressOf(text) === null) {
    return (
      'is not an address like postgres://user:password@host:5432/database; reserved characters ' +
      'in the password, such as @ / : ? # %, must be percent-encoded'
    );
  }
  const [first = text] = serverAddressesOf(text);
  const wanted = new URL(first).searchParams.get('target_session_attrs') ?? 'any';
  return /^(any|primary|read-write)$/.test(wanted)
    ? null
    : 'has a target_session_attrs other than any, primary and read-write';
}

/** The fault of a list of networks, each an address or `address/bits`; null if it is valid. */
export function networksFault(text: string): string | null {
  const wrong = text.split(',').find((each) => {
    const [address = '', bits] = each.split('/');
    const most = { 4: 32, 6: 128 }[isIP(address)] ?? 0;
    return most === 0 || (bits !== undefined && !(Number(bits) >= 1 && Number(bits) <= most));
  });
  return wrong === undefined ? null : 'is not a list of networks such as 10.0.0.0/8,fd00::/8';
}
