import type { RequestListener } from 'node:http';
import t from 'tap';
import { type RemoteKeyTimes, remoteKeys } from '../../src/auth/tokens/signing-keys.ts';
import type { Problem } from '../../src/errors.ts';
import { keyPair, serve } from '../support/auth/tokens.ts';
import { failureOf } from '../support/database/minimal-data.ts';
import { until } from '../support/http/sockets.ts';

const LONG = 3_600_000;
const TIMES: RemoteKeyTimes = {
  timeoutMs: 20_000,
  cooldownMs: LONG,
  maxAgeMs: LONG,
  staleMaxMs: LONG,
  retryMs: LONG,
};

const jwkOf = (kid: string) => ({ ...keyPair('ES256').publicKey.export({ format: 'jwk' }), kid });
const A = jwkOf('a');
const B = jwkOf('b');

/** A header that names a key. */
const by = (kid: string) => ({ alg: 'ES256' as const, kid });

/** An issuer with a changeable answer and a request count. */
async function issuer(test: Parameters<typeof serve>[0]) {
  const state = { asked: 0, answer: (() => {}) as RequestListener };
  const keys = (...all: object[]): void => {
    state.answer = (_request, reply) => reply.end(JSON.stringify({ keys: all }));
  };
  const fail = (status: number, body = ''): void => {
    state.answer = (_request, reply) => reply.writeHead(status).end(body);
  };
  const url = await serve(test, (request, reply) => {
    state.asked += 1;
    state.answer(request, reply);
  });
  return { state, url, keys, fail };
}

/** The outcome of a key lookup. */
const codeOf = (search: Promise<unknown>): Promise<string> =>
  search.then(
    () => 'found',
    ({ code }) => code,
  );

const UNAVAILABLE = { code: 'auth_unavailable', headers: { 'retry-after': /^\d+$/ } };

t.test('an issuer that fails is a 503, and asked once, however many tokens come', async (t) => {
  const cases: Record<string, RequestListener> = {
    'a server error': (_request, reply) => reply.writeHead(500).end('{}'),
    'a redirect': (_request, reply) => reply.writeHead(302, { location: '/other' }).end(),
    'no JSON': (_request, reply) => reply.end('<html>'),
    'other JSON': (_request, reply) => reply.end('{"keys":5}'),
    'far too much': (_request, reply) => reply.end(`{"keys":["${'x'.repeat(50_000_000)}"]}`),
    'a broken line': (request) => request.socket.destroy(),
  };
  /** The number of fetches that 50 tokens caused. */
  const fetchesOf = async (what: string, answer: RequestListener, timeoutMs: number) => {
    const { state, url } = await issuer(t);
    state.answer = answer;
    const find = remoteKeys(url, { ...TIMES, timeoutMs });
    for (let token = 0; token < 50; token += 1) {
      t.match(await failureOf(find(by(`kid ${token}`))), UNAVAILABLE, what);
    }
    return state.asked;
  };
  for (const [what, answer] of Object.entries(cases)) {
    t.equal(await fetchesOf(what, answer, TIMES.timeoutMs), 1, what);
  }
  let count = 0;
  let patience = 50;
  // On a stalled machine a short timeout may elapse before the request has arrived.
  await until('a question arrives', async () => {
    patience *= 2;
    count = await fetchesOf('silence', () => {}, patience);
    return count > 0;
  });
  t.equal(count, 1, 'silence');
});

t.test('an issuer that was down at the start is found when it is up', async (t) => {
  const { url, keys, fail } = await issuer(t);
  fail(503);
  const find = remoteKeys(url, { ...TIMES, retryMs: 1 });
  t.match(await failureOf(find(by('a'))), UNAVAILABLE);
  keys(A);
  await until('the key is found', async () => (await codeOf(find(by('a')))) === 'found');
});

t.test('keys that were read hold while the issuer is down, and no longer than a day', async (t) => {
  const { state, url, keys, fail } = await issuer(t);
  keys(A);
  const find = remoteKeys(url, { ...TIMES, maxAgeMs: 1, cooldownMs: 1 });
  const short = remoteKeys(url, { ...TIMES, maxAgeMs: 1, cooldownMs: 1, staleMaxMs: 1 });
  await Promise.all([find(by('a')), short(by('a'))]);
  fail(500);
  const { asked } = state;
  await until('the issuer has failed a request', async () => {
    await find(by('a'));
    return state.asked > asked;
  });
  await find(by('a'));
  t.match(await failureOf(find(by('b'))), UNAVAILABLE, 'another one may be new: no 401');
  await until('a day is over', async () => (await codeOf(short(by('a')))) === 'auth_unavailable');
});

t.test('tokens with random key ids cause no fetch, and are told when to try again', async (t) => {
  const { state, url, keys } = await issuer(t);
  keys(A);
  const find = remoteKeys(url, { ...TIMES, cooldownMs: 30_000 });
  await find(by('a'));
  for (let token = 0; token < 1_000; token += 1) {
    const refusal = await failureOf(find(by(`random ${token}`)));
    t.match(refusal, { code: 'auth_unavailable' }, 'it may be a new key: no 401');
    const after = Number((refusal as Problem).headers['retry-after']);
    t.ok(after >= 1 && after <= 30, `after ${after} s`);
  }
  t.equal(state.asked, 1);
  await find(by('a'));
});

t.test('a key id that a fetch has not found is a 401', async (t) => {
  const { state, url, keys } = await issuer(t);
  keys(A);
  const first = remoteKeys(url, TIMES);
  t.match(await failureOf(first(by('b'))), { code: 'invalid_token' }, 'by the first fetch');
  t.match(await failureOf(first({ alg: 'RS256', kid: undefined })), { code: 'invalid_token' });
  t.equal(state.asked, 1);
  const find = remoteKeys(url, { ...TIMES, cooldownMs: 1 });
  await find(by('a'));
  await until('a fetch for it', async () => (await codeOf(find(by('b')))) === 'invalid_token');
  t.ok(state.asked >= 3);
});

t.test('with keys that hold, an issuer that fails is asked once in a cooldown', async (t) => {
  const { state, url, keys, fail } = await issuer(t);
  keys(A);
  const find = remoteKeys(url, { ...TIMES, maxAgeMs: 1, retryMs: 1 });
  await find(by('a'));
  fail(500);
  await until('the issuer has received a request', async () => {
    await find(by('a'));
    return state.asked === 2;
  });
  for (let token = 0; token < 1_000; token += 1) {
    t.match(await failureOf(find(by(`random ${token}`))), UNAVAILABLE);
  }
  t.equal(state.asked, 2);
});

t.test('a new key is found after the cooldown, a removed one is gone after its time', async (t) => {
  const { url, keys } = await issuer(t);
  keys(A);
  const find = remoteKeys(url, { ...TIMES, cooldownMs: 1, maxAgeMs: 1 });
  await find(by('a'));
  keys(B);
  await until('the new one is found', async () => (await codeOf(find(by('b')))) === 'found');
  await until('the old one is gone', async () => (await codeOf(find(by('a')))) === 'invalid_token');
});
