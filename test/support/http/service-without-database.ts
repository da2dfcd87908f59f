import type { InjectOptions } from 'fastify';
import type t from 'tap';
import { buildApp } from '../../../src/app.ts';
import { openClient } from '../../../src/db/client.ts';
import { NO_TOKENS, SECRET } from '../auth/auth-app.ts';
import { goodClaims, secretToken } from '../auth/tokens.ts';
import { faultOf } from './conformity.ts';
import type { Reply } from './service.ts';
import { until } from './sockets.ts';
import { type TestSettings, testConfig } from './test-config.ts';

/** A database URL without a listener. */
export const CLOSED = 'postgres://nobody@127.0.0.1:1/nothing';

/** A bearer token with some scopes; its check needs no database. */
export const bearer = (scope: string): string => `Bearer ${secretToken(goodClaims({ scope }))}`;

export type Request = InjectOptions & { readonly method: string; readonly url: string };

/**
 * The service without a database: every answer other than 503 used no SQL. Requests carry a token
 * with all scopes.
 */
export async function serviceWithoutDatabase(
  test: Pick<typeof t, 'teardown'>,
  settings: TestSettings = {},
  url: string = CLOSED,
  timeoutMs = 20_000,
) {
  const client = openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: timeoutMs,
    statementTimeoutMs: timeoutMs,
    readOnly: true,
    applicationName: 'commodity-prices test',
    ...(url === CLOSED ? { awayMs: 0 } : {}),
  });
  if (url === CLOSED) {
    client.link.start();
    await until('the database is known to be down', () => client.link.state === 'down');
  }
  const { JWT_ISSUER, JWT_AUDIENCE } = NO_TOKENS;
  const config = testConfig({ JWT_ISSUER, JWT_AUDIENCE, JWT_SECRET: SECRET, ...settings });
  const app = await buildApp({ config, client });
  test.teardown(async () => {
    await app.close();
    await client.close();
  });
  const request = async (options: Request): Promise<Reply> => {
    const headers = { authorization: bearer('prices:*'), ...options.headers };
    const answer = await app.inject({ ...options, headers } as InjectOptions);
    const fault = faultOf(options.method, options.url, answer);
    if (fault) throw new Error(`${fault}\n${answer.body.slice(0, 500)}`);
    return {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
      text: answer.body,
      json: answer.body === '' ? null : JSON.parse(answer.body),
    };
  };
  /** Sends a body unchanged. */
  const send = (body: string | Buffer, more: Record<string, string> = {}, slug = 'nickel') =>
    request({
      method: 'POST',
      url: `/v3/prices/${slug}`,
      headers: { 'content-type': 'application/json', ...more },
      payload: body,
    });
  /** Sends a value as JSON; a text is JSON already. */
  const post = (slug: string, body: unknown) =>
    send(typeof body === 'string' ? body : JSON.stringify(body), {}, slug);
  return { app, request, send, post };
}
