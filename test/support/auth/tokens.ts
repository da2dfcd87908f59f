import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';
import { NO_TOKENS, SECRET } from './auth-app.ts';

const KEY_PAIRS = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

export type Asymmetric = keyof typeof KEY_PAIRS;
export const ASYMMETRIC = Object.keys(KEY_PAIRS) as Asymmetric[];

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export const keyPair = (alg: Asymmetric): KeyPair => KEY_PAIRS[alg]();

export const pemOf = (publicKey: KeyObject): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString();

const encode = (part: unknown): string => {
  const bytes = typeof part === 'string' || Buffer.isBuffer(part) ? part : JSON.stringify(part);
  return Buffer.from(bytes as string).toString('base64url');
};

/** Signs a text: with a secret, or with a private key by an algorithm. */
export type Signer = (input: string) => Buffer;

export const hmac =
  (secret: string | Buffer, hash = 'sha256'): Signer =>
  (input) =>
    createHmac(hash, secret).update(input).digest();

export const signerOf =
  (alg: string, key: KeyObject): Signer =>
  (input) => {
    const data = Buffer.from(input);
    if (alg === 'EdDSA') return sign(null, data, key);
    const hash = `sha${alg.slice(2)}`;
    if (alg.startsWith('ES')) return sign(hash, data, { key, dsaEncoding: 'ieee-p1363' });
    const padding = alg.startsWith('PS')
      ? constants.RSA_PKCS1_PSS_PADDING
      : constants.RSA_PKCS1_PADDING;
    return sign(hash, data, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST });
  };

/** Builds a token by hand, with nothing checked. Text and bytes stand for themselves. */
export function tokenOf(header: unknown, claims: unknown, signer: Signer): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${signer(input).toString('base64url')}`;
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** Claims that are right in all respects. */
export const goodClaims = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  iss: NO_TOKENS.JWT_ISSUER,
  aud: NO_TOKENS.JWT_AUDIENCE,
  sub: 'analyst-7',
  iat: nowSeconds(),
  exp: nowSeconds() + 600,
  scope: 'prices:nickel',
  ...more,
});

/** A token of the tests' secret (HS256). */
export const secretToken = (claims: unknown, header: object = { alg: 'HS256' }): string =>
  tokenOf(header, claims, hmac(SECRET));

/** A server on a free port of this machine; returns its address. */
export async function serve(
  test: Pick<typeof t, 'teardown'>,
  listener: RequestListener,
): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
}
