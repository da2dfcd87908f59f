import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { NO_TOKENS, SECRET } from '../support/auth/auth-app.ts';
import {
  goodClaims,
  keyPair,
  nowSeconds,
  secretToken,
  serve,
  signerOf,
  tokenOf,
} from '../support/auth/tokens.ts';
import { dataFolder, prices, pricesWith } from '../support/process/programs.ts';
import { makeFolder } from '../support/run/folders.ts';

const { JWT_ISSUER, JWT_AUDIENCE } = NO_TOKENS;
const DATABASE_URL = 'postgres://127.0.0.1:1/none';
const ENV = { DATABASE_URL, JWT_ISSUER, JWT_AUDIENCE, JWT_SECRET: SECRET };

/** Checks a token, with --json. Fails if any output holds a part of the token. */
async function check(
  test: Pick<typeof t, 'teardown' | 'equal' | 'notOk'>,
  token: string,
  env: Record<string, string> = {},
) {
  const given = { ...ENV, ...env };
  const [text, data] = await Promise.all([
    pricesWith(test, `${token}\n`, given, 'token', 'check'),
    pricesWith(test, `Bearer ${token}`, given, 'token', 'check', '--json'),
  ]);
  test.equal(text.code, data.code);
  for (const part of token.split('.')) {
    for (const { stdout, stderr } of [text, data]) {
      test.notOk(`${stdout}${stderr}`.includes(part), 'no part of the token is printed');
    }
  }
  const result = data.stdout === '' ? null : JSON.parse(data.stdout);
  return { code: text.code, stdout: text.stdout, stderr: text.stderr, result };
}

t.test('an accepted token ends with 0 and names its scopes and markets', async (t) => {
  const claims = goodClaims({ scope: 'prices:nickel openid', scp: ['prices:cobalt'] });
  const { code, stdout, result } = await check(t, secretToken(claims));
  t.equal(code, 0);
  t.match(result, {
    accepted: true,
    code: null,
    reason: null,
    subject: 'analyst-7',
    scopes: ['prices:cobalt', 'prices:nickel'],
    markets: ['cobalt', 'nickel'],
    unknownScopes: ['openid'],
    expiresAt: /Z$/,
    hints: [],
  });
  t.match(stdout, /^The service accepts this token\.\n {2}subject {2}analyst-7\n/);
  t.match(stdout, /\n {2}scopes {3}prices:cobalt prices:nickel\n {2}unknown {2}openid\n/);
});

t.test('a token is read from a file as from a pipe, and an empty input ends with 2', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const path = join(folder.path, 'token.txt');
  await writeFile(path, `${secretToken(goodClaims())}\n`);
  const file = await open(path);
  t.teardown(() => file.close());
  const read = await pricesWith(t, file.fd, ENV, 'token', 'check');
  t.same([read.code, read.stderr], [0, '']);
  t.match(read.stdout, /^The service accepts this token\.\n/);
  const nothing = await open('/dev/null');
  t.teardown(() => nothing.close());
  const empty = await pricesWith(t, nothing.fd, ENV, 'token', 'check');
  t.equal(empty.code, 2, empty.stderr);
  t.match(empty.stderr, /standard input has no token/);
});

t.test('a refused token ends with 3 and says why, and what the settings require', async (t) => {
  const cases: readonly (readonly [token: string, code: string, reason: RegExp, hint: RegExp])[] = [
    [
      secretToken(goodClaims({ aud: 'api://other' })),
      'invalid_token',
      /^aud is not the audience of the service$/,
      /^aud is "api:\/\/other", and JWT_AUDIENCE is "commodity-prices"$/,
    ],
    [
      secretToken(goodClaims({ iss: 'https://issuer.test/' })),
      'invalid_token',
      /^iss is not the trusted issuer$/,
      /^iss is "https:\/\/issuer.test\/", and JWT_ISSUER is "https:\/\/issuer.test"$/,
    ],
    [secretToken(goodClaims({ exp: nowSeconds() - 60 })), 'token_expired', /expired/, /^$/],
    [
      secretToken(goodClaims({ iat: nowSeconds(), exp: nowSeconds() + 90_000 })),
      'invalid_token',
      /^the lifetime of 90000 seconds is too long: JWT_LIFETIME_MAX_SECONDS allows \d+$/,
      /^$/,
    ],
    [
      tokenOf({ alg: 'HS256' }, goodClaims(), () => Buffer.from('no signature of this secret')),
      'invalid_token',
      /signature/,
      /^$/,
    ],
    [
      tokenOf({ alg: 'none' }, goodClaims(), () => Buffer.from('x')),
      'invalid_token',
      /^alg is not allowed$/,
      /^$/,
    ],
    ['opaque-token-of-an-issuer', 'invalid_token', /malformed/, /^iss is absent/],
    ['x'.repeat(9_000), 'invalid_token', /malformed/, /^iss is absent/],
  ];
  for (const [token, problem, why, hint] of cases) {
    const { code, stdout, result } = await check(t, token);
    t.same([code, result.accepted, result.code, result.scopes], [3, false, problem, []]);
    t.match(result.reason, why);
    t.match(result.hints[0] ?? '', hint);
    const reason = result.reason.replace(/\.$/, '');
    t.ok(stdout.startsWith(`The service refuses this token (${problem}): ${reason}.\n`), stdout);
  }
});

t.test('a token without a scope of a market ends with 3, and its claims are named', async (t) => {
  const { scope: _scope, ...none } = goodClaims();
  const entra = secretToken({ ...none, roles: ['prices:nickel'] });
  const { code, stdout, result } = await check(t, entra);
  t.same([code, result.accepted, result.markets], [3, true, []]);
  const hint = 'the claim roles has scopes: JWT_SCOPE_CLAIMS=roles reads them';
  t.same(result.hints, [hint]);
  t.match(stdout, /^The token is valid, but it opens no market\.\n[\s\S]*scopes {3}none\n/);
  const read = await check(t, entra, { JWT_SCOPE_CLAIMS: 'roles' });
  t.same([read.code, read.result.scopes, read.result.hints], [0, ['prices:nickel'], []]);
  const { aud: _aud, ...cognito } = goodClaims({ scope: 'prices-api/prices:*' });
  const refused = await check(t, secretToken(cognito));
  t.equal(refused.code, 3);
  t.same(refused.result.hints, [
    'aud is absent, and JWT_AUDIENCE is "commodity-prices"',
    'the claim scope has scopes: JWT_SCOPE_CLAIMS=scope=prices-api/ reads them',
  ]);
  const accepted = await check(t, secretToken(cognito), {
    JWT_SCOPE_CLAIMS: 'scope=prices-api/',
  });
  t.same([accepted.code, accepted.result.scopes], [0, ['prices:*']]);
});

t.test('keys of a JWKS are fetched; an issuer that is away ends with 1', async (t) => {
  const { privateKey, publicKey } = keyPair('ES256');
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256' }];
  let isAway = false;
  const JWT_JWKS_URL = await serve(t, (_request, reply) => {
    reply.writeHead(isAway ? 503 : 200).end(JSON.stringify({ keys }));
  });
  const token = tokenOf({ alg: 'ES256', kid: 'one' }, goodClaims(), signerOf('ES256', privateKey));
  const env = { JWT_SECRET: '', JWT_JWKS_URL };
  t.equal((await check(t, token, env)).code, 0);
  isAway = true;
  const { code, result } = await check(t, token, env);
  t.same([code, result.code], [1, 'auth_unavailable']);
});

t.test('wrong input and settings without an issuer end with 2', async (t) => {
  const cases = [
    ['', {}, /standard input has no token/],
    ['a b', {}, /standard input has more than one token/],
    ['a.b.c', { JWT_SECRET: '' }, /JWT_JWKS_URL: no setting names an issuer/],
    ['a.b.c', { JWT_SCOPE_CLAIMS: 'aud' }, /JWT_SCOPE_CLAIMS: "aud" names aud, which is no claim/],
  ] as const;
  for (const [input, env, message] of cases) {
    const { code, stdout, stderr } = await pricesWith(
      t,
      input,
      { ...ENV, ...env },
      'token',
      'check',
    );
    t.same([code, stdout], [2, ''], stderr);
    t.match(stderr, message);
  }
  const token = secretToken(goodClaims());
  const { code, stderr } = await prices(t, ENV, 'token', 'check', token);
  t.equal(code, 2, 'a token is no argument');
  t.match(stderr, /too many arguments .*\[secret\]/);
  t.notMatch(stderr, token.slice(0, 20));
});

t.test('a development token is accepted with the settings that signed it', async (t) => {
  const DATA_DIR = await dataFolder(t);
  for (const claims of ['scope,scp,scopes', 'roles', 'scope=prices-api/']) {
    const env = { DATA_DIR, JWT_SCOPE_CLAIMS: claims };
    const made = await prices(t, env, 'token', 'create', '--scope', 'prices:nickel');
    const { code, stdout } = await pricesWith(t, made.stdout, env, 'token', 'check');
    t.equal(code, 0, claims);
    t.match(stdout, /\n {2}scopes {3}prices:nickel\n/);
  }
});
