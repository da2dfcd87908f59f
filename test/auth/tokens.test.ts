import { type createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { TokenSettingError } from '../../src/auth/tokens/signing-keys.ts';
import { createDevelopmentToken } from '../../src/cli/token.ts';
import { authApp, HS256, NO_TOKENS, SECRET } from '../support/auth/auth-app.ts';
import {
  ASYMMETRIC,
  goodClaims,
  hmac,
  keyPair,
  nowSeconds,
  pemOf,
  secretToken,
  serve,
  signerOf,
  tokenOf,
} from '../support/auth/tokens.ts';
import { testDatabase } from '../support/database/database.ts';
import { until } from '../support/http/sockets.ts';

type App = Awaited<ReturnType<typeof authApp>>;

const get = (app: App, token: string, url = '/nickel') =>
  app.inject({ url, headers: { authorization: `Bearer ${token}` } });

t.test('a token of the configured secret opens what its scopes name', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db, settings: HS256 });
  const exp = nowSeconds() + 600;
  const answer = await get(app, secretToken(goodClaims({ exp })));
  t.equal(answer.statusCode, 200, answer.body);
  t.same(answer.json().principal, {
    kind: 'token',
    id: 'analyst-7',
    scopes: ['prices:nickel'],
    expiresAt: new Date(exp * 1000).toISOString(),
    limits: null,
  });
  for (const typ of ['JWT', 'jwt', 'at+jwt', 'application/at+jwt', 'AT+JWT']) {
    const token = secretToken(goodClaims(), { alg: 'HS256', typ });
    t.equal((await get(app, token)).statusCode, 200, typ);
  }
  const lowerCase = { authorization: `bearer ${secretToken(goodClaims())}` };
  t.equal((await app.inject({ url: '/nickel', headers: lowerCase })).statusCode, 200);
});

t.test('a development token is a good token, for as long as it was asked for', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db, settings: HS256 });
  const request = {
    secret: SECRET,
    issuer: NO_TOKENS.JWT_ISSUER,
    audience: NO_TOKENS.JWT_AUDIENCE,
    subject: 'developer',
    scopes: ['prices:nickel', 'prices:copper'],
    claim: { name: 'scope', prefix: '' },
    lifetimeSeconds: 900,
  };
  const began = Date.now();
  const token = await createDevelopmentToken(request);
  const createdAtMs = Date.now();
  const answer = await get(app, token);
  t.equal(answer.statusCode, 200, answer.body);
  const { id, scopes, expiresAt } = answer.json().principal;
  t.same({ id, scopes }, { id: 'developer', scopes: request.scopes });
  const lifeFrom = Date.parse(expiresAt) - 900_000;
  t.ok(lifeFrom > began - 1_000 && lifeFrom <= createdAtMs + 1_000, 'times are in whole seconds');
  t.throws(() => createDevelopmentToken({ ...request, scopes: ['nickel'] }), /"prices:nickel"/);
});

for (const alg of ASYMMETRIC) {
  t.test(`${alg} tokens are checked with a public key from a PEM file`, async (t) => {
    const { db } = await testDatabase(t);
    const { privateKey, publicKey } = keyPair(alg);
    const folder = t.testdir({ 'issuer.pem': pemOf(publicKey) });
    const settings = { ...NO_TOKENS, JWT_PUBLIC_KEY_FILE: join(folder, 'issuer.pem') };
    const app = await authApp(t, { db, settings });
    const token = tokenOf({ alg, typ: 'JWT' }, goodClaims(), signerOf(alg, privateKey));
    t.equal((await get(app, token)).statusCode, 200);
    const foreignToken = tokenOf({ alg }, goodClaims(), signerOf(alg, keyPair(alg).privateKey));
    t.equal((await get(app, foreignToken)).statusCode, 401);
  });
}

t.test('tokens are checked with the keys of a JWKS address, found by kid', async (t) => {
  const { db } = await testDatabase(t);
  const pairs = ASYMMETRIC.map((alg) => ({ alg, ...keyPair(alg) }));
  const keys = pairs.map(({ alg, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid: `key-${alg}`,
    alg,
    use: 'sig',
  }));
  let fetches = 0;
  const url = await serve(t, (_request, response) => {
    fetches += 1;
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
  });
  const app = await authApp(t, { db, settings: { ...NO_TOKENS, JWT_JWKS_URL: url } });
  t.equal(fetches, 0, 'the service starts without its issuer');
  const signedBy = ({ alg, privateKey }: (typeof pairs)[number], kid = `key-${alg}`) =>
    tokenOf({ alg, kid }, goodClaims(), signerOf(alg, privateKey));
  // On a stalled machine the first fetch may take longer than the timeout of the service.
  await until('the keys are there', async () => {
    const [pair] = pairs;
    return pair !== undefined && (await get(app, signedBy(pair))).statusCode === 200;
  });
  const needed = fetches;
  for (const pair of pairs) {
    const { alg, privateKey } = pair;
    const signed = (kid: string) => signedBy(pair, kid);
    t.equal((await get(app, signed(`key-${alg}`))).statusCode, 200, alg);
    t.equal((await get(app, signed('key-other'))).statusCode, 503, `${alg}, a kid that may be new`);
    const unnamed = tokenOf({ alg }, goodClaims(), signerOf(alg, privateKey));
    t.equal((await get(app, unnamed)).statusCode, 200, `${alg}, the only key of its kind`);
  }
  t.equal(fetches, needed, 'one fetch serves all, unknown kids included');
});

t.test('a JWKS address that fails is a 503 that says when to come back', async (t) => {
  const { db } = await testDatabase(t);
  const { privateKey } = keyPair('ES256');
  const token = tokenOf({ alg: 'ES256', kid: 'a' }, goodClaims(), signerOf('ES256', privateKey));
  const faults: Record<string, (response: import('node:http').ServerResponse) => void> = {
    'a 500': (response) => response.writeHead(500).end(),
    'a 404': (response) => response.writeHead(404).end(),
    'a redirection': (response) => response.writeHead(302, { location: '/keys' }).end(),
    'no JSON': (response) => response.end('<html>'),
    'no key set': (response) => response.end('{"keys":5}'),
    'a broken connection': (response) => response.destroy(),
  };
  for (const [what, fault] of Object.entries(faults)) {
    const url = await serve(t, (_request, response) => fault(response));
    const app = await authApp(t, { db, settings: { ...NO_TOKENS, JWT_JWKS_URL: url } });
    const answer = await get(app, token);
    t.equal(answer.statusCode, 503, what);
    t.equal(answer.json().code, 'auth_unavailable', what);
    t.match(answer.headers['retry-after'], /^[1-5]$/, what);
    t.equal((await get(app, secretToken(goodClaims()))).statusCode, 401, 'no key is needed');
  }
});

t.test('a key of the JWKS that is too weak or of another curve verifies nothing', async (t) => {
  const { db } = await testDatabase(t);
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const jwk = { ...weak.publicKey.export({ format: 'jwk' }), kid: 'weak' };
  const secret = { kty: 'oct', k: Buffer.from(SECRET).toString('base64url'), kid: 'secret' };
  const url = await serve(t, (_request, response) => {
    response.end(JSON.stringify({ keys: [jwk, secret] }));
  });
  const app = await authApp(t, { db, settings: { ...NO_TOKENS, JWT_JWKS_URL: url } });
  const rsa = tokenOf(
    { alg: 'RS256', kid: 'weak' },
    goodClaims(),
    signerOf('RS256', weak.privateKey),
  );
  const shared = tokenOf({ alg: 'HS256', kid: 'secret' }, goodClaims(), hmac(SECRET));
  // A slow issuer, as on a stalled machine, causes 503 until the next fetch.
  await until('the keys are read', async () => (await get(app, rsa)).statusCode !== 503);
  t.equal((await get(app, rsa)).statusCode, 401);
  t.equal((await get(app, shared)).statusCode, 401);
});

t.test('without a token setting every token is refused', async (t) => {
  const { db } = await testDatabase(t);
  const app = await authApp(t, { db });
  const answer = await get(app, secretToken(goodClaims()));
  t.equal(answer.statusCode, 401);
  t.equal(answer.json().code, 'invalid_token');
});

t.test('a setting that no token could be checked with stops the start, by name', async (t) => {
  const { db } = await testDatabase(t);
  const { publicKey } = keyPair('RS256');
  const privatePem = (key: ReturnType<typeof createPrivateKey>) =>
    key.export({ type: 'pkcs8', format: 'pem' }).toString();
  const folder = t.testdir({
    'private.pem': privatePem(keyPair('ES256').privateKey),
    'weak.pem': pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey),
    'p384.pem': pemOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey),
    'koblitz.pem': pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey),
    'ed448.pem': pemOf(generateKeyPairSync('ed448').publicKey),
    'words.pem': 'not a key',
  });
  const stop = (settings: object, message: RegExp) =>
    t.rejects(authApp(t, { db, settings: { ...NO_TOKENS, ...settings } }), { message });
  const names = ['private', 'weak', 'p384', 'koblitz', 'ed448', 'words', 'missing'];
  for (const name of names) {
    const path = join(folder, `${name}.pem`);
    await stop({ JWT_PUBLIC_KEY_FILE: path }, /^JWT_PUBLIC_KEY_FILE: /);
  }
  await stop({ JWT_SECRET: 'x'.repeat(31) }, /^JWT_SECRET: .* 32 bytes/);
  await stop({ JWT_SECRET: `\n ${pemOf(publicKey)}` }, /^JWT_SECRET: is a key/);
  const jwk = JSON.stringify(publicKey.export({ format: 'jwk' }));
  await stop({ JWT_SECRET: jwk }, /^JWT_SECRET: is a key/);
  const both = { JWT_SECRET: SECRET, JWT_JWKS_URL: 'https://issuer.test/jwks' };
  await stop(both, /exclude each other/);
  const error = await authApp(t, { db, settings: { ...NO_TOKENS, ...both } }).catch((e) => e);
  t.type(error, TokenSettingError);
});
