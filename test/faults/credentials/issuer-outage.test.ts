import type { RequestListener } from 'node:http';
import type t from 'tap';
import { HS256 } from '../../support/auth/auth-app.ts';
import { goodClaims, keyPair, serve, signerOf, tokenOf } from '../../support/auth/tokens.ts';
import { testDatabase } from '../../support/database/database.ts';
import { peakGrowth, startServiceProcess } from '../../support/http/service-process.ts';
import { startListening, until } from '../../support/http/sockets.ts';
import { type Bounded, within } from '../../support/process/figures.ts';
import { codeOf, type HttpAnswer, send, sendAll } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const pair = keyPair('ES256');
const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'known', alg: 'ES256', use: 'sig' };
const KEYS = JSON.stringify({ keys: [jwk] });

const signed = (kid: string): string =>
  tokenOf({ alg: 'ES256', kid }, goodClaims(), signerOf('ES256', pair.privateKey));

const ASK = { path: '/v3/me' };
const MIB = 1_024 * 1_024;
const { JWT_ISSUER, JWT_AUDIENCE } = HS256;
const ISSUER = { JWT_ISSUER, JWT_AUDIENCE };

/** A service with a changeable issuer, and the number of key set fetches. */
async function issued(test: Test, first: RequestListener) {
  const issuer = { fetches: 0, answer: first };
  const url = await serve(test, (request, response) => {
    issuer.fetches += 1;
    issuer.answer(request, response);
  });
  const service = await startListening(test, await testDatabase(test), {
    ...ISSUER,
    JWT_JWKS_URL: url,
  });
  const me = (kid: string): Promise<HttpAnswer> =>
    send(false, { port: service.port, key: signed(kid) }, ASK);
  return { ...service, issuer, me };
}

const good: RequestListener = (_request, response) => {
  response.setHeader('content-type', 'application/json').end(KEYS);
};

/** Failures of an issuer's key set endpoint. */
const BROKEN: Readonly<Record<string, RequestListener>> = {
  'a 500': (_request, response) => response.writeHead(500).end(),
  'no JSON': (_request, response) => response.end('<html>'),
  'no keys': (_request, response) => response.end('{"keys":{}}'),
  'nothing at all': () => {},
  'an answer after 20 s': (_request, response) => {
    setTimeout(() => response.end(KEYS), 20_000).unref();
  },
  'half an answer': (_request, response) => {
    response.writeHead(200, { 'content-length': '9999' }).write(KEYS.slice(0, 40));
    setTimeout(() => response.destroy(), 50);
  },
};

/** Sends tokens with unknown key ids; returns the number of fetches that they caused. */
async function sendUnknownKeys(
  test: Test,
  { port, issuer }: Pick<Awaited<ReturnType<typeof issued>>, 'port' | 'issuer'>,
  count: number,
  allowedIn: (ms: number) => number,
): Promise<Bounded> {
  const before = issuer.fetches;
  const begun = performance.now();
  const unknown = Array.from({ length: count }, (_, at) => ({
    ...ASK,
    headers: { authorization: `Bearer ${signed(`unknown ${at}`)}` },
  }));
  const refused = await sendAll(test, { port, key: signed('known') }, unknown, 8);
  const allowed = allowedIn(performance.now() - begun);
  const outcomes = new Set(refused.map((each) => `${each.status} ${codeOf(each)}`));
  test.same(
    [...outcomes].filter((each) => !/^(401 invalid_token|503 auth_unavailable)$/.test(each)),
    [],
  );
  const fetches = issuer.fetches - before;
  test.ok(fetches <= allowed, `${fetches} fetches, ${allowed} allowed`);
  return within(fetches, allowed, 'fetches');
}

/** Measures the memory of a service process whose issuer has a key set of 50 MB. */
async function hugeSet(test: Test): Promise<Record<'taken' | 'grown', Bounded>> {
  let sent = 0;
  const url = await serve(test, (_request, response) => {
    response.setHeader('content-type', 'application/json');
    const space = Buffer.alloc(MIB, 0x20);
    const more = (): void => {
      while (!response.destroyed && sent < 50 * MIB) {
        sent += space.length;
        if (!response.write(space)) return void response.once('drain', more);
      }
      response.end(KEYS);
    };
    more();
  });
  const service = await startServiceProcess(test, await testDatabase(test), {
    ...ISSUER,
    JWT_JWKS_URL: url,
  });
  const { pid = 0 } = service.running.child;
  const me = (key: string): Promise<HttpAnswer> => send(false, { ...service, key }, ASK);
  test.equal((await me(service.key)).status, 200, 'warm');
  const grown = await peakGrowth(pid, async () => {
    const answer = await me(signed('known'));
    test.equal(`${answer.status} ${codeOf(answer)}`, '503 auth_unavailable', 'a huge key set');
  });
  test.ok(sent > 0, 'the key set was requested');
  test.equal((await me(service.key)).status, 200, 'an API key');
  return { taken: within(sent / MIB, 16, 'MB'), grown: within(grown, 16, 'MB') };
}

fault(
  'F30',
  'an issuer of tokens that fails',
  '503 with Retry-After if no key was ever read; known keys still work; unknown key ids cause ' +
    '≤ 1 fetch every 30 s, ≤ 5 in the first 30 s of an issuer that never answered; of a key set ' +
    'of 50 MB ≤ 16 MB are read, with ≤ 16 MB of memory; API keys are unaffected',
  async (t) => {
    let requests = 0;
    const many = byLength(100, 1_000);
    for (const [what, listener] of Object.entries(BROKEN)) {
      const { me, port, key } = await issued(t, listener);
      const answer = await me('known');
      t.equal(`${answer.status} ${codeOf(answer)}`, '503 auth_unavailable', what);
      t.match(answer.headers['retry-after'], /^\d+$/);
      t.equal((await send(false, { port, key }, ASK)).status, 200, 'an API key');
      requests += 2;
    }
    const { me, issuer, port } = await issued(t, good);
    // On a stalled machine the first fetch may take longer than the timeout of the service.
    await until('the keys are there', async () => (await me('known')).status === 200);
    for (const listener of Object.values(BROKEN)) {
      issuer.answer = listener;
      t.equal((await me('known')).status, 200, 'a key that is known');
    }
    const known = await sendUnknownKeys(
      t,
      { port, issuer },
      many,
      (ms) => 1 + Math.floor(ms / 30_000),
    );
    const never = await issued(t, BROKEN['a 500'] as RequestListener);
    const unknown = await sendUnknownKeys(
      t,
      never,
      many,
      (ms) =>
        // After 0, 2, 6, 14 and 30 s, then each 30 s.
        Math.min(5, 1 + Math.floor(Math.log2(ms / 2_000 + 1))) + Math.floor(ms / 30_000),
    );
    const large = await hugeSet(t);
    requests += 2 * many + 10;
    return {
      requests,
      'fetches for unknown keys': known,
      'of an issuer that never answered': unknown,
      'read of a key set of 50 MB': large.taken,
      'memory for it': large.grown,
    };
  },
);
