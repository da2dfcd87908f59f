import { type JsonError, parseJson } from '../../std/json.ts';
import type { Principal } from '../credentials.ts';
import { expiredToken, invalidToken } from '../refusals.ts';

/*
 * Tokens (JWT) of an issuer that the operator trusts. `signing-keys.ts` finds the key of a
 * signature; this file checks the header and the claims, and returns the principal.
 */

const reject = (why: string): never => {
  throw invalidToken(new Error(why));
};

/** Algorithms of public keys. */
export const ASYMMETRIC = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;

export type Algorithm = 'HS256' | (typeof ASYMMETRIC)[number];

/** The two header members that are used; all others are ignored or rejected. */
export interface TokenHeader {
  readonly alg: Algorithm;
  readonly kid: string | undefined;
}

const BYTES_MAX = 8_192;

/** Maximum nesting of the header and the claims; issuers nest three levels. */
const DEPTH_MAX = 16;

const TYPES = new Set(['jwt', 'at+jwt', 'application/at+jwt']);

type TokenMembers = Readonly<Record<string, unknown>>;

/** Strict base64url: only the canonical encoding passes, so an altered token is never accepted. */
function bytesOf(segment: string): Buffer {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : reject('not base64url');
}

function membersOf(segment: string): TokenMembers {
  const bytes = bytesOf(segment);
  let value: unknown;
  try {
    value = parseJson(bytes, DEPTH_MAX);
  } catch (error) {
    throw invalidToken(error as JsonError);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return reject('not an object');
  }
  return value as TokenMembers;
}

/**
 * Checks the form of a token and returns its header, before any key lookup. `jku`, `jwk`, `x5c`
 * and `x5u` are never read: keys come only from the configuration.
 *
 * @param allowed algorithms of the configured keys
 * @throws Problem invalid_token
 */
export function headerOf(token: string, allowed: readonly Algorithm[]): TokenHeader {
  if (Buffer.byteLength(token) > BYTES_MAX) reject('too long');
  const segments = token.split('.');
  const [head = '', payload = '', signature = ''] = segments;
  if (segments.length !== 3 || signature === '') reject('not three segments');
  bytesOf(signature);
  membersOf(payload);
  const header = membersOf(head);
  const alg = allowed.find((each) => each === header['alg']) ?? reject('alg is not allowed');
  // RFC 7515, section 4.1.11: no extension is supported, so each critical one is rejected.
  if ('crit' in header) reject('a critical extension');
  const { typ, kid } = header;
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.has(typ.toLowerCase()))) {
    reject('typ is not supported');
  }
  if (kid !== undefined && typeof kid !== 'string') return reject('kid is not a text');
  return { alg, kid };
}

/** A claim of a token that names scopes. */
export interface ScopeClaim {
  readonly name: string;
  /** Text before each scope, such as the identifier of a resource server; empty without one. */
  readonly prefix: string;
}

/** Rules for the claims of a token. */
export interface TokenRules {
  readonly issuer: string;
  readonly audience: string;
  /** Claims that name scopes. Others name none. */
  readonly scopeClaims: readonly ScopeClaim[];
  /** Maximum lifetime (exp − iat) of a token with the claim iat. */
  readonly lifetimeMaxSeconds: number;
  /** Tolerance for clock skew. */
  readonly leewaySeconds: number;
}

export type Claims = Readonly<Record<string, unknown>>;

const SCOPES_MAX = 100;

const textOf = (claim: unknown, name: string): string =>
  typeof claim === 'string' && claim !== '' ? claim : reject(`${name} is not a text`);

/** A time in whole seconds since 1970, within the range of a JavaScript Date. */
function timeOf(claim: unknown, name: string): number {
  const isTime = Number.isSafeInteger(claim) && Math.abs(claim as number) <= 8.64e12;
  return isTime ? (claim as number) : reject(`${name} is not a time`);
}

const optionalTimeOf = (claim: unknown, name: string): number | undefined =>
  claim === undefined ? undefined : timeOf(claim, name);

function checkAudience(claim: unknown, expected: string): void {
  const list = Array.isArray(claim) ? claim : [claim];
  if (!list.every((each) => typeof each === 'string')) reject('aud is not a text');
  if (!list.includes(expected)) reject('aud is not the audience of the service');
}

function listOf(claim: unknown, name: string): string[] {
  if (claim === undefined) return [];
  if (typeof claim === 'string') return claim.split(' ').filter((each) => each !== '');
  const isList = Array.isArray(claim) && claim.every((each) => typeof each === 'string');
  // RFC 9068 defines `scope` as a text; a list there is an error of the issuer.
  return isList && name !== 'scope' ? claim : reject(`${name} is of another type`);
}

/** Scopes of the claims, without their prefixes. Unknown scopes grant nothing. */
function scopesOf(claims: Claims, scopeClaims: readonly ScopeClaim[]): Set<string> {
  const entries = scopeClaims.map(({ name, prefix }) => ({
    prefix,
    named: listOf(claims[name], name),
  }));
  const count = entries.reduce((sum, { named }) => sum + named.length, 0);
  if (count > SCOPES_MAX) reject('too many scopes');
  // A scope without the prefix belongs to another resource server.
  const own = entries.flatMap(({ named, prefix }) =>
    named.filter((each) => each.startsWith(prefix)).map((each) => each.slice(prefix.length)),
  );
  return new Set(own);
}

/**
 * True if the prefix of a scope names this service, as the claim aud does. Amazon Cognito sends no
 * aud in access tokens: the identifier of the resource server in its scopes has that meaning.
 */
const isNamedByScope = (claims: Claims, scopeClaims: readonly ScopeClaim[]): boolean =>
  scopeClaims.some(
    ({ name, prefix }) =>
      prefix !== '' && listOf(claims[name], name).some((each) => each.startsWith(prefix)),
  );

/**
 * Checks the claims of a token with a verified signature, by RFC 7519, RFC 8725 and RFC 9068. The
 * expiry is checked last: `token_expired` then means that everything else is valid.
 *
 * @param nowSeconds current time in seconds since 1970
 * @throws Problem invalid_token or token_expired
 */
export function principalOf(claims: Claims, rules: TokenRules, nowSeconds: number): Principal {
  if (textOf(claims['iss'], 'iss') !== rules.issuer) reject('iss is not the trusted issuer');
  const needsAudience = 'aud' in claims || !isNamedByScope(claims, rules.scopeClaims);
  if (needsAudience) checkAudience(claims['aud'], rules.audience);
  const id = textOf(claims['sub'], 'sub');
  const exp = timeOf(claims['exp'], 'exp');
  const nbf = optionalTimeOf(claims['nbf'], 'nbf');
  const iat = optionalTimeOf(claims['iat'], 'iat');
  if (nbf !== undefined && nowSeconds < nbf - rules.leewaySeconds) reject('not valid yet');
  if (iat !== undefined && nowSeconds < iat - rules.leewaySeconds) reject('not issued yet');
  const lifetime = exp - (iat ?? exp);
  if (lifetime > rules.lifetimeMaxSeconds) {
    const limit = `JWT_LIFETIME_MAX_SECONDS allows ${rules.lifetimeMaxSeconds}`;
    reject(`the lifetime of ${lifetime} seconds is too long: ${limit}`);
  }
  const scopes = scopesOf(claims, rules.scopeClaims);
  if (nowSeconds >= exp + rules.leewaySeconds) throw expiredToken();
  const expiresAt = new Date(exp * 1000).toISOString();
  return { kind: 'token', id, scopes, expiresAt, limits: null };
}
