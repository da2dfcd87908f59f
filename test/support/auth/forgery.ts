import type t from 'tap';
import { openClient } from '../../../src/db/client.ts';
import { overSocket } from '../http/socket-request.ts';
import { type authApp, REQUEST_ID } from './auth-app.ts';

type App = Awaited<ReturnType<typeof authApp>>;
type Test = Pick<typeof t, 'teardown' | 'same' | 'equal' | 'match'>;

/** A handle that fails at any statement: an answer other than 503 ran none. */
export function noDatabase(test: Pick<Test, 'teardown'>) {
  const client = openClient({
    url: 'postgres://nobody@127.0.0.1:9/nothing',
    connectionsMax: 1,
    acquireTimeoutMs: 500,
    statementTimeoutMs: 0,
    readOnly: true,
    applicationName: 'a database that is down',
  });
  test.teardown(() => client.close());
  return client.db;
}

/** Sends a token to a market, over a socket. */
export const sendToken = (app: App, token: string) =>
  overSocket(app, {
    url: '/nickel',
    headers: { authorization: `Bearer ${token}`, 'x-request-id': REQUEST_ID },
  });

/** Each forgery is a 401, and no answer tells it from another. */
export async function refusesAll(
  test: Test,
  app: App,
  forgeries: Record<string, string>,
): Promise<void> {
  const bodies = new Set<string>();
  const passed: string[] = [];
  for (const [what, token] of Object.entries(forgeries)) {
    const answer = await sendToken(app, token);
    if (answer.statusCode !== 401) passed.push(`${what}: ${answer.statusCode}`);
    bodies.add(JSON.stringify([answer.headers['www-authenticate'], answer.body]));
  }
  test.same(passed, []);
  test.equal(bodies.size, 1, [...bodies].join('\n'));
  test.match([...bodies][0], /invalid_token/);
}
