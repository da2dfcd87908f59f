import { lookup as lookUpName } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { EXIT, ExpectedError } from '../std/base-errors.ts';

/*
 * The addresses that messages may be sent to. The check is made on the addresses that a connection
 * uses, in its lookup, so that a name cannot lead elsewhere after the check.
 */

/** An address that no message is sent to. */
export class RefusedReceiver extends ExpectedError {
  override readonly name = 'RefusedReceiver';
  override readonly exitCode = EXIT.usage;
}

/** The networks of WEBHOOK_NETWORKS, to which messages may be sent although they are not public. */
export type AllowedNetworks = readonly ReturnType<typeof ipaddr.parseCIDR>[];

/** Parses networks separated by commas, each an address or `address/bits`. */
export const networksOf = (text: string): AllowedNetworks =>
  text
    .split(',')
    .filter((each) => each !== '')
    .map((each) => {
      const bits = isIP(each) === 6 ? 128 : 32;
      return ipaddr.parseCIDR(each.includes('/') ? each : `${each}/${bits}`);
    });

/** Public unicast addresses of IPv6 (RFC 4291): all others are translated, local or reserved. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/** Networks in 2000::/3 that are not public, beyond those that the library knows. */
const NOT_PUBLIC = ['2001::/23', '3fff::/20'].map((each) => ipaddr.parseCIDR(each));

type Address = ReturnType<typeof ipaddr.parse>;

const isIn = (address: Address, [network, bits]: AllowedNetworks[number]): boolean =>
  address.kind() === network.kind() && address.match(network, bits);

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  if (address.kind() === 'ipv4') return true;
  return isIn(address, GLOBAL_UNICAST) && !NOT_PUBLIC.some((each) => isIn(address, each));
}

/**
 * True if a message may be sent to an address. An IPv4 address that IPv6 maps is judged as itself;
 * one that IPv6 translates or tunnels (NAT64, 6to4, Teredo) is never public.
 * @param isPlain true for http: then only the networks of WEBHOOK_NETWORKS are allowed
 */
export function mayReach(text: string, networks: AllowedNetworks, isPlain = false): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  return networks.some((each) => isIn(address, each)) || (!isPlain && isPublic(address));
}

const refused = (host: string, isPlain: boolean): RefusedReceiver =>
  new RefusedReceiver(
    isPlain
      ? `${host} may be reached over https only: no network of WEBHOOK_NETWORKS has its address`
      : `${host} is not a public address, and no network of WEBHOOK_NETWORKS has it`,
  );

/** The host of an address, without the brackets of IPv6. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

/** True for an address without TLS. */
export const isPlainText = ({ protocol }: URL): boolean => protocol === 'http:';

/**
 * Checks a host that is an address itself, for which a connection makes no lookup.
 * @throws RefusedReceiver
 */
export function checkLiteral(url: URL, networks: AllowedNetworks): void {
  const host = hostOf(url);
  if (isIP(host) === 0 || mayReach(host, networks, isPlainText(url))) return;
  throw refused(host, isPlainText(url));
}

/**
 * The lookup of a connection: it returns only addresses that messages may be sent to.
 * @param lookUp the lookup of the system; tests give another
 */
export const guardedLookup =
  (networks: AllowedNetworks, isPlain: boolean, lookUp: LookupFunction = lookUpName) =>
  (...[hostname, options, callback]: Parameters<LookupFunction>): void => {
    lookUp(hostname, { ...options, all: true }, (error, found) => {
      const all = Array.isArray(found) ? found : [];
      const allowed = all.filter(({ address }) => mayReach(address, networks, isPlain));
      const [first] = allowed;
      if (error !== null || first === undefined) {
        callback(error ?? refused(hostname, isPlain), []);
      } else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
