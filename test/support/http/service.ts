import type { FastifyInstance, InjectOptions } from 'fastify';
import type t from 'tap';
import { buildApp } from '../../../src/app.ts';
import { createKey } from '../../../src/auth/keys/keys.ts';
import { ALL_MARKETS, type Scope } from '../../../src/catalog/scopes.ts';
import type { TestDatabase } from '../database/database.ts';
import { faultOf } from './conformity.ts';
import { overSocket, type SocketAnswer } from './socket-request.ts';
import { type TestSettings, testConfig } from './test-config.ts';

type Test = Pick<typeof t, 'teardown'>;

/** An answer, as tests read it. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies that OpenAPI has checked.
  readonly json: any;
}

export interface Service {
  readonly app: FastifyInstance;
  readonly key: string;
  /** Sends a request with the service's own key; fails when the answer breaks openapi.yaml. */
  request(options: InjectOptions & { method: string; url: string }): Promise<Reply>;
  /** Sends a body to a market, with all scopes. */
  post(slug: string, body: unknown): Promise<Reply>;
}

/** A key with some scopes, made in the database of a test. */
export async function keyFor(database: TestDatabase, scopes: readonly Scope[]): Promise<string> {
  const expiresAt = new Date(Date.now() + 24 * 3_600_000);
  const { key } = await createKey(database.db, { name: 'test', scopes, expiresAt });
  return key;
}

/** The transport of a request to the application. */
type Way = (app: FastifyInstance, options: InjectOptions) => Promise<SocketAnswer>;

const inside: Way = async (app, options) => (await app.inject(options)) as SocketAnswer;

/** The service over a database of a test. */
export async function serviceOn(
  test: Test,
  database: TestDatabase,
  settings: TestSettings = {},
  way: Way = inside,
  now?: () => number,
): Promise<Service> {
  const app = await buildApp({
    config: testConfig(settings),
    client: database.client,
    ...(now === undefined ? {} : { now }),
  });
  test.teardown(() => app.close());
  const key = await keyFor(database, [ALL_MARKETS]);
  const request: Service['request'] = async (options) => {
    const headers = { 'x-api-key': key, ...options.headers };
    const answer = await way(app, { ...options, headers } as InjectOptions);
    const fault = faultOf(options.method, String(options.url), answer);
    if (fault) throw new Error(`${fault}\n${answer.body.slice(0, 500)}`);
    const isJson = /[/+]json/.test(String(answer.headers['content-type']));
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text: answer.body,
      json: isJson && answer.body !== '' ? JSON.parse(answer.body) : null,
    };
  };
  return {
    app,
    key,
    request,
    post: (slug, body) =>
      request({ method: 'POST', url: `/v3/prices/${slug}`, payload: body as object }),
  };
}

/** The same over TCP: the service listens and requests use connections. */
export async function listeningOn(
  test: Test,
  database: TestDatabase,
  settings: TestSettings = {},
): Promise<Service> {
  const service = await serviceOn(test, database, settings, overSocket);
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  return service;
}
