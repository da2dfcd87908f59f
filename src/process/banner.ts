import type { ExamplePrice } from '../db/seed/seed.ts';

/** Data of the banner that a service with the embedded database prints. */
export interface BannerData {
  /** Address of the service, without a trailing slash. */
  readonly address: string;
  readonly key: string;
  /** Null if there are no prices. */
  readonly example: ExamplePrice | null;
  readonly notice: string | null;
}

/** URL by which a client on the same machine reaches a listening socket. */
export function addressOf(host: string, port: number): string {
  const own: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  return `http://${own[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}`;
}

/** A shell command that requests the last week of one price. */
function curlLine(address: string, key: string, example: ExamplePrice | null): string {
  if (example === null) return `curl -s ${address}/v3/prices -H 'x-api-key: ${key}'`;
  const body = JSON.stringify({
    filters: { codes: [example.code], dateFrom: example.since },
    options: { includeSeries: true },
  });
  return (
    `curl -s ${address}/v3/prices/${example.market} -H 'content-type: application/json' ` +
    `-H 'x-api-key: ${key}' -d '${body.replaceAll("'", "'\\''")}'`
  );
}

/**
 * The banner: addresses, demo key and an example command. The explorer reads the key from the
 * fragment of its URL, which browsers do not send.
 */
export function bannerOf({ address, key, example, notice }: BannerData): string {
  return [
    '',
    `  Commodity Prices Service   ${address}`,
    `  Explorer                   ${address}/explorer#key=${key}`,
    `  Documentation              ${address}/docs`,
    `  Demo key, for 24 hours     ${key}`,
    ...(notice === null ? [] : [`  ${notice}`]),
    '',
    '  Try it:',
    `  ${curlLine(address, key, example)}`,
    '',
    '  Ctrl-C stops the service, and its database unless another process uses it.',
    '',
    '',
  ].join('\n');
}
