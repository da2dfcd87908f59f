import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** Makes an application listen on a free port of this machine; returns its address. */
export async function addressOf(app: FastifyInstance): Promise<string> {
  await app.listen({ port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}
