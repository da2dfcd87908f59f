import { NO_TOKENS, SECRET } from './auth-app.ts';
import { goodClaims, hmac, nowSeconds, secretToken, tokenOf } from './tokens.ts';

/** Tokens by what is wrong with them. */
export type Forgeries = Readonly<Record<string, string>>;

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

const claims = (): Record<string, object | string> => ({
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
  'deep nesting': nested(2_900),
  'a claim nested seventeen levels': goodClaims({ more: JSON.parse(nested(16)) }),
  'a claim nested two thousand levels': JSON.stringify(goodClaims()).replace(
    '{',
    `{"more":${nested(2_000)},`,
  ),
  'JSON in JSON': JSON.stringify(JSON.stringify(goodClaims())),
});

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

/** Tokens with a valid signature and an invalid header or claim. */
export const forgedInside = (): Forgeries =>
  Object.fromEntries([
    ...Object.entries(claims()).map(([what, each]) => [what, secretToken(each)]),
    ...Object.entries(HEADERS).map(([what, each]) => [
      what,
      tokenOf(each, goodClaims(), hmac(SECRET)),
    ]),
  ]);

/** Alterations of a valid token. */
export function altered(): Forgeries {
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
  return {
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
  };
}
