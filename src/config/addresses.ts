import { isIP } from 'node:net';

/**
 * An address for each server of an address that names several before its database, as libpq takes
 * it: `postgres://user:password@one:5432,two:5432/prices`.
 */
export function serverAddressesOf(text: string): string[] {
  const [, before = '', hosts = '', after = ''] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(text) ?? [];
  return before === '' ? [text] : hosts.split(',').map((host) => `${before}${host}${after}`);
}

/**
 * What may be shown of a database's address: `host:port/database`, or null when it is no address
 * that can be used. A `/`, `?` or `#` in a password ends what is read as the host, so part of the
 * password would pass for one: the `@` that then comes too late gives it away.
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
      // A % that is not followed by two hexadecimal digits.
      return null;
    }
    hosts.push(url.host);
  }
  return `${hosts.join()}${urls[0]?.pathname}`;
}

/** Whose texts read as http on this machine; a user name before the host would pass the form. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** Why a text is no address that the service may ask; null when it is one. */
export function addressFault(text: string): string | null {
  const url = URL.parse(text);
  if (url === null) return 'is not an address';
  if (url.username !== '' || url.password !== '') return 'must not name a user or password';
  const isSafe = url.protocol === 'https:' || LOOPBACK.includes(url.hostname);
  return isSafe ? null : 'must be https, or http on this machine';
}

/** Why a text is no address of a database; null when it is one. */
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

/** Why a text is no list of networks, each an address or `address/bits`; null when it is one. */
export function networksFault(text: string): string | null {
  const wrong = text.split(',').find((each) => {
    const [address = '', bits] = each.split('/');
    const most = { 4: 32, 6: 128 }[isIP(address)] ?? 0;
    return most === 0 || (bits !== undefined && !(Number(bits) >= 1 && Number(bits) <= most));
  });
  return wrong === undefined ? null : 'is not a list of networks such as 10.0.0.0/8,fd00::/8';
}
