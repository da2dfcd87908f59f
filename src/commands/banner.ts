/** What the terminal shows when the service runs on its own database. */
export interface Welcome {
  /** Address of the service, without a slash at the end. */
  readonly address: string;
  readonly key: string;
  /** The first day of the series that the example asks for. */
  readonly since: string | null;
  readonly notice: string | null;
}

/** The address that a client on this machine uses for a listening socket. */
export function addressOf(host: string, port: number): string {
  const own: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  return `http://${own[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}`;
}

/** Address, docs page, demo key, and one line to paste. */
export function bannerOf({ address, key, since, notice }: Welcome): string {
  const body = JSON.stringify({
    filters: { codes: ['CP-NI-0001'], ...(since === null ? {} : { dateFrom: since }) },
    options: { includeSeries: true },
  });
  return [
    '',
    `  Commodity Prices Service   ${address}`,
    `  Documentation              ${address}/docs`,
    `  Demo key, every market     ${key}`,
    ...(notice === null ? [] : [`  ${notice}`]),
    '',
    '  Try it:',
    `  curl -s ${address}/v3/prices/nickel -H 'content-type: application/json' ` +
      `-H 'x-api-key: ${key}' -d '${body}'`,
    '',
    '  Ctrl-C stops the service and its database.',
    '',
    '',
  ].join('\n');
}
