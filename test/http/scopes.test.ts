import type { InjectOptions } from 'fastify';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { createKey } from '../../src/auth/keys/keys.ts';
import { MARKETS, type MarketSlug } from '../../src/catalog/markets.ts';
import { ALL_MARKETS, SCOPES, scopeOf } from '../../src/catalog/scopes.ts';
import { createDevelopmentToken } from '../../src/cli/token.ts';
import { goodClaims, hmac, tokenOf } from '../support/auth/tokens.ts';
import { testDatabase } from '../support/database/database.ts';
import { faultOf } from '../support/http/conformity.ts';
import { overSocket } from '../support/http/socket-request.ts';
import { testConfig } from '../support/http/test-config.ts';
import { recordFigures } from '../support/run/faults.ts';

type Headers = Record<string, string>;
type Test = Pick<typeof t, 'teardown'>;

const SECRET = 'the secret of the scope matrix, 32 bytes and more';
const SLUGS: readonly MarketSlug[] = MARKETS.map(({ slug }) => slug);

let requests = 0;
t.teardown(() => recordFigures('F34', { requests }));

async function start(test: Test) {
  const { url, db, pool, client } = await testDatabase(test);
  const config = testConfig({ DATABASE_URL: url, JWT_SECRET: SECRET, LOG_LEVEL: 'silent' });
  const app = await buildApp({ config, client });
  await app.listen({ port: 0, host: '127.0.0.1' });
  test.teardown(() => app.close());

  const keyWith = async (scopes: readonly string[]): Promise<Headers> => {
    const { key, id } = await createKey(db, { name: 'a', scopes: SCOPES, expiresAt: null });
    await pool.query(
      `delete from api_key_scope s using api_key k
        where k.id = s.api_key_id and k.public_id = $1 and s.scope <> all($2)`,
      [id, scopes],
    );
    return { 'x-api-key': key };
  };
  /** A token of an issuer that writes anything into its scopes. */
  const tokenWith = (scope: unknown, claim = 'scope'): Headers => {
    const names = { iss: config.JWT_ISSUER, aud: config.JWT_AUDIENCE, scope: undefined };
    const claims = goodClaims({ ...names, [claim]: scope });
    return { authorization: `Bearer ${tokenOf({ alg: 'HS256' }, claims, hmac(SECRET))}` };
  };
  const send = async (options: InjectOptions & { method: string; url: string }) => {
    requests += 1;
    const answer = await overSocket(app, options);
    const isJson = /json/.test(String(answer.headers['content-type']));
    const fault = isJson ? faultOf(options.method, options.url, answer) : null;
    if (fault) throw new Error(fault);
    return answer;
  };
  const post = (slug: string, headers: Headers) =>
    send({ method: 'POST', url: `/v3/prices/${slug}`, headers, payload: {} });
  const get = (url: string, headers: Headers) => send({ method: 'GET', url, headers });
  /** The markets that a credential opens; every other one must say which scope it needs. */
  const opened = async (headers: Headers): Promise<string[]> => {
    const open: string[] = [];
    const odd: string[] = [];
    for (const slug of SLUGS) {
      for (const answer of [
        await post(slug, headers),
        await get(`/v3/prices/${slug}/filters`, headers),
      ]) {
        if (answer.statusCode === 200) open.push(slug);
        else if (
          answer.statusCode !== 403 ||
          answer.json().code !== 'insufficient_scope' ||
          answer.headers['www-authenticate'] !==
            `Bearer error="insufficient_scope", scope="prices:${slug}"`
        ) {
          odd.push(`${slug} ${answer.statusCode} ${answer.body}`);
        }
      }
    }
    if (odd.length > 0) throw new Error(odd.join('\n'));
    return open;
  };
  return { app, config, db, keyWith, tokenWith, post, get, opened };
}

/** Each market twice: its prices and its filters. */
const both = (slugs: readonly string[]): string[] => slugs.flatMap((slug) => [slug, slug]);

t.test('a scope opens its own market and no other, for keys and tokens', async (t) => {
  const { keyWith, tokenWith, opened } = await start(t);
  for (const slug of SLUGS) {
    const scope = scopeOf(slug);
    t.same(await opened(await keyWith([scope])), both([slug]), `a key with ${scope}`);
    t.same(await opened(tokenWith(scope)), both([slug]), `a token with ${scope}`);
    t.same(await opened(tokenWith([scope], 'scp')), both([slug]), `a token with scp ${scope}`);
  }
});

t.test('all other scopes together do not open a market', async (t) => {
  const { keyWith, tokenWith, opened } = await start(t);
  for (const slug of SLUGS) {
    const others = SLUGS.filter((each) => each !== slug);
    const scopes = others.map(scopeOf);
    t.same(await opened(await keyWith(scopes)), both(others), `a key without ${slug}`);
    t.same(await opened(tokenWith(scopes.join(' '))), both(others), `a token without ${slug}`);
  }
});

t.test('prices:* opens every market, and no scope opens none', async (t) => {
  const { keyWith, tokenWith, opened } = await start(t);
  t.same(await opened(await keyWith([ALL_MARKETS])), both(SLUGS));
  t.same(await opened(tokenWith(ALL_MARKETS)), both(SLUGS));
  t.same(await opened(tokenWith(`openid ${ALL_MARKETS} profile`)), both(SLUGS));
  t.same(await opened(await keyWith([])), []);
  for (const none of [undefined, '', ' ']) t.same(await opened(tokenWith(none)), []);
});

t.test('a market whose name begins like another is another', async (t) => {
  const { keyWith, tokenWith, post } = await start(t);
  const twins: [MarketSlug, MarketSlug][] = [
    ['lithium', 'lithium-ion-battery'],
    ['lithium-ion-battery', 'lithium'],
    ['natural-graphite', 'synthetic-graphite'],
  ];
  for (const [held, asked] of twins) {
    for (const headers of [await keyWith([scopeOf(held)]), tokenWith(scopeOf(held))]) {
      t.equal((await post(held, headers)).statusCode, 200);
      t.equal((await post(asked, headers)).statusCode, 403, `${held} does not open ${asked}`);
    }
  }
});

/** Texts similar to a scope of a market or of all markets, but invalid. */
const nearly = (slug: string): unknown[] => [
  'prices',
  'prices:',
  'prices:**',
  'prices.*',
  '*',
  ' ',
  `PRICES:${slug.toUpperCase()}`,
  `prices:${slug.toUpperCase()}`,
  `Prices:${slug}`,
  `prices:${slug}*`,
  `prices:${slug}:read`,
  `prices:${slug}\t`,
  `prices:${slug}\u0000`,
  `prices:${slug},prices:*`,
  `prices: ${slug}`,
  `prices:${slug.slice(0, -1)}`,
  `${slug}`,
];

t.test('a scope in another case, cut, padded or globbed opens nothing', async (t) => {
  const { db, tokenWith, opened, post } = await start(t);
  for (const slug of SLUGS) {
    const refused: string[] = [];
    for (const scope of nearly(slug)) {
      const asText = await post(slug, tokenWith(scope));
      const asList = await post(slug, tokenWith([scope, `prices:${slug} `], 'scopes'));
      if (asText.statusCode === 403 && asList.statusCode === 403) refused.push(String(scope));
    }
    t.same(refused, nearly(slug), slug);
    const outcomes = nearly(slug).map((scope) =>
      createKey(db, { name: 'a', scopes: [String(scope)], expiresAt: null }).then(
        () => `was made: ${scope}`,
        (error) => error.name,
      ),
    );
    t.same(new Set(await Promise.all(outcomes)), new Set(['UnknownScopeError']), slug);
  }
  t.same(await opened(tokenWith(SLUGS.map((slug) => `Prices:${slug}`).join(' '))), []);
});

t.test('the database itself takes no other scope', async (t) => {
  const { db } = await start(t);
  for (const scope of ['prices:nickel ', 'PRICES:NICKEL', 'prices:gold', 'prices']) {
    const insert = db.insertInto('access_scope').values({ scope, market_id: null });
    const held = db.insertInto('api_key_scope').values({ api_key_id: 1, scope });
    await t.rejects(held.execute(), { code: '23503' }, scope);
    if (scope !== 'prices:gold') await t.rejects(insert.execute(), { code: '23514' }, scope);
  }
});

t.test('the list of markets is for anyone with a credential, and marks what is open', async (t) => {
  const { keyWith, tokenWith, get } = await start(t);
  t.equal((await get('/v3/prices', {})).statusCode, 401);
  for (const [headers, open] of [
    [await keyWith([]), []],
    [tokenWith('openid'), []],
    [await keyWith(['prices:lithium']), ['lithium']],
    [tokenWith('prices:lithium Prices:copper'), ['lithium']],
    [await keyWith([ALL_MARKETS]), SLUGS],
  ] as [Headers, readonly string[]][]) {
    const answer = await get('/v3/prices', headers);
    t.equal(answer.statusCode, 200);
    const listed: { slug: string; authorized: boolean }[] = answer.json().data;
    t.same(
      new Set(listed.filter((each) => each.authorized).map(({ slug }) => slug)),
      new Set(open),
    );
    t.equal(listed.length, SLUGS.length);
  }
});

t.test('without a credential, or with two, no market answers', async (t) => {
  const { keyWith, tokenWith, post } = await start(t);
  const key = await keyWith([ALL_MARKETS]);
  const token = tokenWith(ALL_MARKETS);
  for (const slug of SLUGS) {
    const none = await post(slug, {});
    t.equal(none.statusCode, 401, slug);
    t.equal(none.json().code, 'missing_credentials');
    t.equal(none.headers['www-authenticate'], 'Bearer realm="prices", ApiKey realm="prices"');
    const two = await post(slug, { ...key, ...token });
    t.equal(two.statusCode, 400, slug);
    t.equal(two.json().code, 'ambiguous_credentials');
  }
});

t.test('health and documentation need no credential', async (t) => {
  const { get } = await start(t);
  const paths = [
    '/live',
    '/ready',
    '/health',
    '/v3/prices/health',
    '/openapi.json',
    '/openapi.yaml',
    '/llms.txt',
  ];
  for (const path of paths) {
    const { statusCode } = await get(path, {});
    t.ok(statusCode === 200 || statusCode === 503, `${path}: ${statusCode}`);
  }
  t.match((await get('/docs', {})).statusCode, /^(200|302)$/);
});

t.test('a development token opens the markets it was made for', async (t) => {
  const { config, opened } = await start(t);
  const token = await createDevelopmentToken({
    secret: SECRET,
    issuer: config.JWT_ISSUER,
    audience: config.JWT_AUDIENCE,
    subject: 'developer',
    scopes: ['prices:cobalt'],
    claim: { name: 'scope', prefix: '' },
    lifetimeSeconds: config.JWT_LIFETIME_MAX_SECONDS,
  });
  t.same(await opened({ authorization: `Bearer ${token}` }), both(['cobalt']));
});
