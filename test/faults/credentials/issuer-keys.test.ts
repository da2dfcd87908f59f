import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type t from 'tap';
import { authApp, NO_TOKENS } from '../../support/auth/auth-app.ts';
import { noDatabase, sendToken } from '../../support/auth/forgery.ts';
import { goodClaims, keyPair, serve, signerOf, tokenOf } from '../../support/auth/tokens.ts';
import { until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const UNKNOWN_KEYS = byLength(300, 2_000);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Advances both clocks, `Date` and `performance`. */
function clockOf(test: Test): (ms: number) => void {
  let ahead = 0;
  const [date, steady] = [Date.now, performance.now];
  Date.now = () => date() + ahead;
  performance.now = () => steady.call(performance) + ahead;
  test.teardown(() => {
    Date.now = date;
    performance.now = steady;
  });
  return (ms) => {
    ahead += ms;
  };
}

/** An issuer with changeable keys, and an application with default settings that trusts it. */
async function world(test: Test) {
  const issuer = { fetches: 0, kids: ['old'], isBroken: false };
  const pair = keyPair('ES256');
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig' };
  const url = await serve(test, (_request, response) => {
    issuer.fetches += 1;
    if (issuer.isBroken) response.writeHead(500).end();
    else response.end(JSON.stringify({ keys: issuer.kids.map((kid) => ({ ...jwk, kid })) }));
  });
  const settings = { ...NO_TOKENS, JWT_JWKS_URL: url };
  const app = await authApp(test, { db: noDatabase(test), settings });
  const ask = async (kid: string): Promise<string> => {
    const token = tokenOf({ alg: 'ES256', kid }, goodClaims(), signerOf('ES256', pair.privateKey));
    const { statusCode, headers, json } = await sendToken(app, token);
    if (statusCode === 503) test.match(headers['retry-after'], /^\d+$/);
    return statusCode === 200 ? '200' : `${statusCode} ${json().code}`;
  };
  /** On a stalled machine a fetch may take longer than the timeout of the service. */
  const comesTo = (kid: string, expected: string): Promise<void> =>
    until(`${kid}: ${expected}`, async () => (await ask(kid)) === expected);
  return { issuer, ask, comesTo };
}

/** Sends tokens with long unknown key ids; returns the memory that they occupy. */
async function sendUnknown(test: Test, ask: (kid: string) => Promise<string>) {
  const many = async (count: number): Promise<Set<string>> => {
    const outcomes = new Set<string>();
    for (let at = 0; at < count; at += 1) outcomes.add(await ask(`${at} ${'x'.repeat(4_000)}`));
    return outcomes;
  };
  const count = () => ({ keys: Number(queryObjects(CryptoKey, { format: 'count' })) });
  const heap = (): number => {
    collect();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  await many(byLength(20, 300));
  const [before, heapBefore] = [count(), heap()];
  const outcomes = await many(UNKNOWN_KEYS);
  // One of them may cause the fetch, which does not find it.
  outcomes.delete('401 invalid_token');
  test.same([...outcomes], ['503 auth_unavailable']);
  test.same(count(), before, 'no key is cached for them');
  return heap() - heapBefore;
}

fault(
  'F30b',
  'an issuer that rotates its keys, and one that is unavailable for a day; unknown keys',
  'a new key works after 30 s, with a 503 until then, a removed one for ≤ 10 min; the last keys ' +
    'that were read are used for 24 h, not longer; unknown keys are 401 after a fetch, are not ' +
    'cached, and cause ≤ 1 fetch every 30 s',
  async (t) => {
    const forward = clockOf(t);
    const { issuer, ask, comesTo } = await world(t);
    await comesTo('old', '200');
    issuer.kids = ['new'];
    forward(10 * MINUTE);
    await comesTo('old', '401 invalid_token');
    t.equal(await ask('new'), '200');
    issuer.kids = ['new', 'newest'];
    t.equal(await ask('newest'), '503 auth_unavailable', 'it may be new, and is');
    forward(MINUTE / 2);
    await comesTo('newest', '200');
    t.equal(await ask('new'), '200', 'both, while one takes the place of the other');

    issuer.isBroken = true;
    const read = issuer.fetches;
    for (let hours = 1; hours < 24; hours += 1) {
      forward(HOUR);
      t.equal(await ask('newest'), '200', `${hours} h without an issuer`);
    }
    const tries = issuer.fetches - read;
    t.ok(tries > 0 && tries <= 24, `${tries} fetches`);
    forward(HOUR);
    t.equal(await ask('newest'), '503 auth_unavailable', 'after a day');
    issuer.isBroken = false;
    forward(MINUTE / 2);
    await comesTo('newest', '200');

    forward(MINUTE / 2);
    await comesTo('no key of the issuer', '401 invalid_token');

    const [fetched, begun] = [issuer.fetches, performance.now()];
    const grown = await sendUnknown(t, ask);
    const allowed = 1 + Math.floor((performance.now() - begun) / (MINUTE / 2));
    const fetches = issuer.fetches - fetched;
    t.ok(fetches <= allowed, `${fetches} fetches for unknown keys, ${allowed} allowed`);
    return {
      'hours without an issuer': 24,
      'unknown keys': UNKNOWN_KEYS,
      'fetches for them': within(fetches, allowed, 'fetches'),
      'heap grew': within(grown, 4, 'MB'),
    };
  },
);
