import { once } from 'node:events';
import type { Command } from 'commander';
import { CLIENT_SECRETS, readSecret, secretsFromFiles } from '../../config/environment.ts';
import { UsageError } from '../../std/base-errors.ts';
import { PROGRAM, VERSION } from '../../std/program.ts';
import { command, option, wholeOf } from '../command.ts';

/*
 * The command `mcp`: tools for language models over the Model Context Protocol. `tools.ts` declares
 * the tools, and `service.ts` sends their requests to the service.
 */

/** Default timeout of a call in seconds; clients of the protocol time out after 60. */
const TIMEOUT_S = 45;
const TIMEOUT_S_MAX = 600;

/** Serves the tools until a signal arrives or the input ends; both cancel running calls. */
async function serve(timeoutMs: number): Promise<void> {
  // Loaded lazily, because no other command needs the SDK.
  const { McpServer } = await import('@modelcontextprotocol/server');
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const { openService } = await import('./service.ts');
  const { addTools, INSTRUCTIONS } = await import('./tools.ts');
  const { secrets, faults } = secretsFromFiles(process.env, CLIENT_SECRETS);
  if (faults.length > 0) throw new UsageError(faults.join('\n'));
  const {
    COMMODITY_PRICES_URL: url,
    COMMODITY_PRICES_KEY: key,
    COMMODITY_PRICES_TOKEN: given,
    COMMODITY_PRICES_TOKEN_FILE: tokenFile,
  } = { ...process.env, ...Object.fromEntries(secrets) };
  // A token ends within hours, so its file is read for each call: another program renews it.
  const token = tokenFile ? () => readSecret('COMMODITY_PRICES_TOKEN_FILE', tokenFile) : given;
  const service = openService({ url, key, token, timeoutMs });
  const ended = new AbortController();
  const log = (text: string): void => void process.stderr.write(`commodity-prices: ${text}\n`);
  const transport = new StdioServerTransport();
  const handle = serveStdio(
    () => {
      const server = new McpServer(
        { name: 'commodity-prices', version: VERSION },
        { instructions: INSTRUCTIONS },
      );
      addTools(server, service);
      return server;
    },
    { transport, onerror: ({ message }) => log(message) },
  );
  const closed = new Promise<void>((resolve) => {
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      resolve();
    };
  });
  log(`serving MCP over standard input and output; calls ${service.url}`);
  const { signal } = ended;
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'].map((name) => once(process, name, { signal }));
  await Promise.race([closed, ...signals]);
  for (const each of signals) each.catch(() => {});
  ended.abort();
  await handle.close();
}

/** Adds `mcp`. */
export const addMcp: (parent: Command) => void = command({
  name: 'mcp',
  summary: 'serve the prices to an assistant (MCP)',
  description:
    'Serves the Model Context Protocol over standard input and output, with four tools that only ' +
    'read: list_markets, find_prices, get_prices and get_changes. They call a running service ' +
    'over HTTP; no database is needed.',
  options: [option('--timeout <seconds>', 'life of a call in seconds').default(String(TIMEOUT_S))],
  help: `
An assistant starts this command. COMMODITY_PRICES_KEY is the API key that it reads with, or
COMMODITY_PRICES_KEY_FILE the file that holds it. COMMODITY_PRICES_TOKEN is a bearer token instead
of a key; the file COMMODITY_PRICES_TOKEN_FILE is read for each call, so that a token can be
renewed. COMMODITY_PRICES_URL is the address of the service, http://127.0.0.1:3000 without it.
Proxies and own certificates are settings of Node: NODE_USE_ENV_PROXY=1 with HTTPS_PROXY, and
NODE_EXTRA_CA_CERTS.

Examples:
  ${PROGRAM} mcp
  COMMODITY_PRICES_URL=https://prices.example.com ${PROGRAM} mcp --timeout 20`,
  async run({ timeout }: { readonly timeout: string }) {
    await serve(wholeOf('--timeout', timeout, 1, TIMEOUT_S_MAX) * 1_000);
  },
});
