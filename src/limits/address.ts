import { isIPv4, isIPv6 } from 'node:net';

/** The eight groups of an IPv6 address, or null when it is none. */
function groupsOf(address: string): string[] | null {
  if (!isIPv6(address)) return null;
  const [head = '', tail] = address.split('::');
  const split = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = split(head);
  const after = tail === undefined ? [] : split(tail);
  const missing = Math.max(8 - before.length - after.length, 0);
  return [...before, ...Array.from({ length: missing }, () => '0'), ...after];
}

/**
 * The key of a client in a limit by address: an IPv4 address, or the /64 of an IPv6 address, since
 * a single machine has all of those (RFC 6177).
 */
export function clientNetwork(address: string): string {
  if (isIPv4(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const groups = groupsOf(address.replace(/%.*$/, ''));
  if (groups === null) return address;
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
