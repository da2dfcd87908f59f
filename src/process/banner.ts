import type { ExamplePrice } from '../db/seed/seed.ts';

/** What the terminal shows when the service runs on its own database. */
interface Welcome {
  /** Address of the service, without a slash at the end. */
  readonly address: string;
  readonly key: string;
  /** Addresses of services that run on the same database. */
  readonly others: readonly string[];
  /** Null when there are no prices. */
  readonly example: ExamplePrice | null;
  readonly notice: string | null;
}

/** The address that a client on this machine uses for a listening socket. */
export function addressOf(host: string, port: number): string {
  const own: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  return `http://${own[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}`;
}

/** A request for the last week of one price, as one line for a shell. */
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
 * Addresses, demo key, and one line to paste. The explorer takes the key from behind `#`, which a
 * browser sends to nobody.
 */
export function bannerOf({ address, key, others, example, notice }: Welcome): string {
  return [
    '',
    `  Commodity Prices Service   ${address}`,
    `  Explorer                   ${address}/explorer#key=${key}`,
    `  Documentation              ${address}/docs`,
    `  Demo key, for 24 hours     ${key}`,
    ...others.map((each) => `  Runs on this data already  ${each}`),
    ...(notice === null ? [] : [`  ${notice}`]),
    '',
    '  Try it:',
    `  ${curlLine(address, key, example)}`,
    '',
    others.length === 0
      ? '  Ctrl-C stops the service and its database.'
      : '  Ctrl-C stops the service; the last one that stops ends the database.',
    '',
    '',
  ].join('\n');
}
