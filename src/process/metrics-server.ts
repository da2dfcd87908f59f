import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from '@prometheus-io/client';
import { listenError } from './ports.ts';

/**
 * Serves `GET /metrics` on a separate port: clients of the API cannot read metrics, and an overload
 * of the API does not affect them.
 * @throws ConfigError if the port or host cannot be used
 */
export async function serveMetrics(
  registry: Registry,
  { port, host }: { readonly port: number; readonly host: string },
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer(async ({ method, url }, reply) => {
    const isRead = method === 'GET' || method === 'HEAD';
    if (url !== '/metrics' || !isRead) {
      reply.writeHead(404, { 'content-type': 'text/plain' }).end('GET /metrics\n');
      return;
    }
    try {
      const text = await registry.metrics();
      reply.writeHead(200, { 'content-type': registry.contentType }).end(text);
    } catch {
      reply.writeHead(500, { 'content-type': 'text/plain' }).end('the metrics cannot be read\n');
    }
  });
  server.listen(port, host);
  await once(server, 'listening').catch((error: Error) => {
    throw listenError(error, { host, port, prefix: 'METRICS_' });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
