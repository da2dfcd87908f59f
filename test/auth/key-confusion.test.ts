import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { authApp, NO_TOKENS } from '../support/auth/auth-app.ts';
import { noDatabase, refusesAll, sendToken } from '../support/auth/forgery.ts';
import {
  goodClaims,
  hmac,
  keyPair,
  pemOf,
  serve,
  signerOf,
  tokenOf,
} from '../support/auth/tokens.ts';
import { until } from '../support/http/sockets.ts';

t.test('a public key is never taken for a secret, nor for another algorithm', async (t) => {
  const { privateKey, publicKey } = keyPair('RS256');
  const pem = pemOf(publicKey);
  const folder = t.testdir({ 'issuer.pem': pem });
  const settings = { ...NO_TOKENS, JWT_PUBLIC_KEY_FILE: join(folder, 'issuer.pem') };
  const app = await authApp(t, { db: noDatabase(t), settings });
  const secrets = [
    pem,
    pem.trim(),
    ` ${pem}`,
    `\n${pem}`,
    `${pem}\n`,
    JSON.stringify(publicKey.export({ format: 'jwk' })),
  ];
  const confused = secrets.flatMap((secret, index) =>
    ['HS256', 'HS384', 'HS512'].map((alg) => [
      `${alg} ${index}`,
      tokenOf({ alg }, goodClaims(), hmac(secret, `sha${alg.slice(2)}`)),
    ]),
  );
  const rsa = (header: object, alg: string) =>
    tokenOf(header, goodClaims(), signerOf(alg, privateKey));
  await refusesAll(t, app, {
    ...Object.fromEntries(confused),
    RS512: rsa({ alg: 'RS512' }, 'RS512'),
    RS384: rsa({ alg: 'RS384' }, 'RS384'),
    PS512: rsa({ alg: 'PS512' }, 'PS512'),
    'rs256 in lower case': rsa({ alg: 'rs256' }, 'RS256'),
    'PS256 signed as RS256': rsa({ alg: 'PS256' }, 'RS256'),
    'RS256 signed as PS256': rsa({ alg: 'RS256' }, 'PS256'),
    'ES256 of a key of its own': tokenOf(
      { alg: 'ES256' },
      goodClaims(),
      signerOf('ES256', keyPair('ES256').privateKey),
    ),
    'ES256 of zeros': tokenOf({ alg: 'ES256' }, goodClaims(), () => Buffer.alloc(64)),
    'EdDSA of zeros': tokenOf({ alg: 'EdDSA' }, goodClaims(), () => Buffer.alloc(64)),
    none: tokenOf({ alg: 'none' }, goodClaims(), () => Buffer.alloc(0)),
  });
});

t.test('a token cannot bring its own key, nor name where to get it', async (t) => {
  const { privateKey, publicKey } = keyPair('ES256');
  const evil = keyPair('ES256');
  const evilJwk = evil.publicKey.export({ format: 'jwk' });
  let fetched = 0;
  const trap = await serve(t, (_request, response) => {
    fetched += 1;
    response.end(JSON.stringify({ keys: [{ ...evilJwk, kid: 'evil' }] }));
  });
  const url = await serve(t, (_request, response) => {
    const jwk = publicKey.export({ format: 'jwk' });
    response.end(JSON.stringify({ keys: [{ ...jwk, kid: 'real', alg: 'ES256' }] }));
  });
  const app = await authApp(t, {
    db: noDatabase(t),
    settings: { ...NO_TOKENS, JWT_JWKS_URL: url },
  });
  const real = tokenOf({ alg: 'ES256', kid: 'real' }, goodClaims(), signerOf('ES256', privateKey));
  // On a stalled machine the first fetch may take longer than the timeout of the service.
  await until('the keys are there', async () => (await sendToken(app, real)).statusCode === 200);
  const forged = (header: object) =>
    tokenOf({ alg: 'ES256', ...header }, goodClaims(), signerOf('ES256', evil.privateKey));
  const kids = ['evil', '../../dev/null', trap, "' or '1'='1", '', '__proto__', 'x'.repeat(999)];
  const unknown = [
    ...kids.map((kid) => ({ kid })),
    ...['jku', 'x5u'].map((name) => ({ kid: 'evil', [name]: trap })),
  ];
  for (const header of unknown) {
    const { statusCode, json } = await sendToken(app, forged(header));
    t.same([statusCode, json().code], [503, 'auth_unavailable'], JSON.stringify(header));
  }
  await refusesAll(t, app, {
    'kid real': forged({ kid: 'real' }),
    'no kid': forged({}),
    jwk: forged({ kid: 'real', jwk: evilJwk }),
    'jwk without kid': forged({ jwk: { ...evilJwk, kid: 'real' } }),
    jku: forged({ kid: 'real', jku: trap }),
    x5u: forged({ kid: 'real', x5u: trap }),
    x5c: forged({
      kid: 'real',
      x5c: [evil.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')],
    }),
  });
  t.equal(fetched, 0, 'no address of a token is ever asked');
  const wrongCurve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
  const koblitz = tokenOf(
    { alg: 'ES256', kid: 'real' },
    goodClaims(),
    signerOf('ES256', wrongCurve.privateKey),
  );
  await refusesAll(t, app, { koblitz });
});
