import { join } from 'node:path';
import t from 'tap';
import { authApp, HS256, NO_TOKENS } from '../support/auth/auth-app.ts';
import { altered, forgedInside } from '../support/auth/forged-tokens.ts';
import { noDatabase, refusesAll, sendToken } from '../support/auth/forgery.ts';
import {
  goodClaims,
  hmac,
  keyPair,
  nowSeconds,
  pemOf,
  secretToken,
  signerOf,
  tokenOf,
} from '../support/auth/tokens.ts';

t.test('forged claims and headers are refused alike, though the signature is good', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  const more = { a: [[[[[[[[[[[[[[]]]]]]]]]]]]]] };
  t.equal(
    (await sendToken(app, secretToken(goodClaims({ more })))).statusCode,
    200,
    'sixteen levels',
  );
  await refusesAll(t, app, forgedInside());
});

t.test('a token that was altered in any way is refused', async (t) => {
  const app = await authApp(t, { db: noDatabase(t), settings: HS256 });
  await refusesAll(t, app, altered());
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
