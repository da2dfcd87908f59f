import type { AddressInfo } from 'node:net';
import type { FastifyInstance, InjectOptions } from 'fastify';

/** The parts of an answer that tests read; an answer of `inject` has them too. */
export interface SocketAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
  json(): any;
}

/** Sends a request to a listening application over a keep-alive connection. */
export async function overSocket(
  app: FastifyInstance,
  { method = 'GET', url, headers, payload }: InjectOptions,
): Promise<SocketAnswer> {
  const { port } = app.server.address() as AddressInfo;
  const type = payload === undefined ? {} : { 'content-type': 'application/json' };
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const answer = await fetch(`http://127.0.0.1:${port}${String(url)}`, {
    method,
    headers: { ...type, ...(headers as Record<string, string>) },
    body: payload === undefined ? null : text,
  });
  const body = await answer.text();
  return {
    statusCode: answer.status,
    headers: Object.fromEntries(answer.headers),
    body,
    json: () => JSON.parse(body),
  };
}
