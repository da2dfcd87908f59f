import { join } from 'node:path';
import t from 'tap';
import { authApp, HS256, NO_TOKENS, SECRET } from '../support/auth-app.ts';
import { noDatabase, refusesAll, sendToken } from '../support/forgery.ts';
import {
  goodClaims,
  hmac,
  keyPair,
  nowSeconds,
  pemOf,
  secretToken,
  signerOf,
  tokenOf,
} from '../support/tokens.ts';

const CLAIMS: Record<string, object | string> = {
  'not UTF-8': Buffer.from(JSON.stringify(goodClaims({ sub: '\u00ff' })), 'latin1'),
  'iss is a list': goodClaims({ iss: [NO_TOKENS.JWT_ISSUER] }),
  'iss of another': goodClaims({ iss: 'https://issuer.test.evil' }),
  'aud of another': goodClaims({ aud: 'commodity-prices-2' }),
  'aud with a space': goodClaims({ aud: 'commodity-prices ' }),
  'aud in capitals': goodClaims({ aud: 'Commodity-Prices' }),
  'no aud': goodClaims({ aud: undefined }),
  'no sub': goodClaims({ sub: undefined }),
  'exp as a text': goodClaims({ exp: String(nowSeconds() + 600) }),
  'exp as a fraction': goodClaims({ exp: nowSeconds() + 600.5 }),
  'no exp': goodClaims({ exp: undefined }),
  'exp beyond numbers': JSON.stringify(goodClaims()).replace(/"exp":\d+/, '"exp":1e999'),
  'a life that is too long': goodClaims({ exp: nowSeconds() + 86_500 }),
  'nbf to come': goodClaims({ nbf: nowSeconds() + 400 }),
  'iat to come': goodClaims({ iat: nowSeconds() + 3_600, exp: nowSeconds() + 4_000 }),
  'scope of another type': goodClaims({ scope: { 'prices:*': true } }),
  'a claim named twice': JSON.stringify(goodClaims()).replace('{', '{"sub":"root",'),
  'a claim named twice, once escaped': JSON.stringify(goodClaims()).replace(
    '{',
    '{"\\u0073ub":"root",',
  ),
  'a list': [goodClaims()],
  'a text': '"prices:*"',
  null: 'null',
  'no JSON': 'prices',
  nothing: '',
  'deep nesting': `${'['.repeat(2_900)}${']'.repeat(2_900)}`,
  'JSON in JSON': JSON.stringify(JSON.stringify(goodClaims())),
};

const HEADERS: Record<string, object | string> = {
  'no algorithm': {},
  'alg none': { alg: 'none' },
  'alg as a list': { alg: ['HS256'] },
  'alg in lower case': { alg: 'hs256' },
  'another alg': { alg: 'HS512' },
  'an asymmetric alg': { alg: 'RS256' },
  'typ of another': { alg: 'HS256', typ: 'dpop+jwt' },
  'typ is no text': { alg: 'HS256', typ: 5 },
  'typ null': { alg: 'HS256', typ: null },
  'an unknown crit': { alg: 'HS256', crit: ['x'], x: 1 },
  'crit b64': { alg: 'HS256', crit: ['b64'], b64: true },
  'an empty crit': { alg: 'HS256', crit: [] },
  'crit null': { alg: 'HS256', crit: null },
  'crit is a text': { alg: 'HS256', crit: 'exp' },
  'kid is no text': { alg: 'HS256', kid: 5 },
  'alg named twice': '{"alg":"none","alg":"HS256"}',
  'a header that is a list': '["HS256"]',
  'a header that is null': 'null',
};

t.test('forged claims and headers are refused alike, though the signature is good', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  t.equal((await sendToken(app, secretToken(goodClaims()))).statusCode, 200);
  const claims = Object.entries(CLAIMS).map(([what, each]) => [what, secretToken(each)]);
  await refusesAll(t, app, Object.fromEntries(claims));
  const headers = Object.entries(HEADERS).map(([what, each]) => [
    what,
    tokenOf(each, goodClaims(), hmac(SECRET)),
  ]);
  await refusesAll(t, app, Object.fromEntries(headers));
});

t.test('a token that was altered in any way is refused', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  const good = secretToken(goodClaims());
  const [head = '', payload = '', signature = ''] = good.split('.');
  const none = ['none', 'None', 'nOnE', 'NONE'].flatMap((alg) => {
    const unsigned = tokenOf({ alg }, goodClaims(), () => Buffer.alloc(0));
    return [
      [alg, unsigned],
      [`${alg} without the last dot`, unsigned.slice(0, -1)],
      [`${alg} with a signature`, unsigned + signature],
    ];
  });
  await refusesAll(t, app, {
    ...Object.fromEntries(none),
    'no signature': `${head}.${payload}.`,
    'two segments': `${head}.${payload}`,
    'four segments': `${good}.${signature}`,
    'five segments, as JWE has': `${head}..${payload}.${signature}.${signature}`,
    'only dots': '..',
    'a longer signature': `${good}AAAA`,
    'a shorter signature': good.slice(0, -2),
    padding: `${good}=`,
    'a + in the signature': `${head}.${payload}.+${signature.slice(1)}`,
    'the claims of another token': [
      head,
      secretToken(goodClaims({ sub: 'b' })).split('.')[1],
      signature,
    ].join('.'),
    'a wrong secret': tokenOf({ alg: 'HS256' }, goodClaims(), hmac(`${SECRET} `)),
    'an empty secret': tokenOf({ alg: 'HS256' }, goodClaims(), hmac('')),
    'SHA-512 under the name of HS256': tokenOf(
      { alg: 'HS256' },
      goodClaims(),
      hmac(SECRET, 'sha512'),
    ),
    'too long': secretToken(goodClaims({ more: 'x'.repeat(8_200) })),
    '15 kB': secretToken(goodClaims({ more: 'x'.repeat(11_000) })),
  });
});

t.test('no bit of a signature can be changed, spare bits of base64url included', async (t) => {
  const { privateKey, publicKey } = keyPair('RS256');
  const folder = t.testdir({ 'issuer.pem': pemOf(publicKey) });
  const settings = { ...NO_TOKENS, JWT_PUBLIC_KEY_FILE: join(folder, 'issuer.pem') };
  const app = await authApp(t, { db: noDatabase(t), settings });
  const good = tokenOf({ alg: 'RS256' }, goodClaims(), signerOf('RS256', privateKey));
  const cut = good.lastIndexOf('.') + 1;
  const signature = Buffer.from(good.slice(cut), 'base64url');
  const forgeries: Record<string, string> = {};
  for (let at = 0; at < 256; at += 1) {
    const flipped = Buffer.from(signature);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
    forgeries[`byte ${at}`] = good.slice(0, cut) + flipped.toString('base64url');
  }
  const last = good.slice(-1);
  for (const other of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
    if (other !== last) forgeries[`last character ${other}`] = good.slice(0, -1) + other;
  }
  t.equal((await sendToken(app, good)).statusCode, 200);
  await refusesAll(t, app, forgeries);
});

t.test('an expired token is called so only when it is genuine', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  const late = goodClaims({ iat: nowSeconds() - 900, exp: nowSeconds() - 60 });
  const genuine = await sendToken(app, secretToken(late));
  t.equal(genuine.statusCode, 401);
  t.equal(genuine.json().code, 'token_expired');
  t.match(genuine.headers['www-authenticate'], /error="invalid_token"/);
  const forged = await sendToken(app, tokenOf({ alg: 'HS256' }, late, hmac('x'.repeat(32))));
  t.equal(forged.json().code, 'invalid_token');
});
