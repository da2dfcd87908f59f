import type { AddressInfo } from 'node:net';
import type { FastifyInstance, InjectOptions } from 'fastify';

/** What is read of an answer; one of `inject` has it as well. */
export interface SocketAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects
  json(): any;
}

/** A request to an application that listens, over a connection that is kept. */
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
