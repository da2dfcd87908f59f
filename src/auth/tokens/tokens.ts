import { isUtf8 } from 'node:buffer';
import type { Principal } from '../principal.ts';
import { expiredToken, invalidToken } from '../refusals.ts';

const refuse = (why: string): never => {
  throw invalidToken(new Error(why));
};

/** Strings and brackets of a JSON text; numbers, words and commas between them do not matter. */
const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/gs;

/**
 * Tells if an object of a JSON text has a duplicate member. JSON.parse keeps the last one silently,
 * other parsers the first: a signed text must not mean two things.
 *
 * @param json a text that JSON.parse accepts
 */
function hasDuplicateMembers(json: string): boolean {
  const open: Set<string>[] = [];
  for (const [token, colon] of json.matchAll(TOKEN)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (colon !== undefined) {
      const name: string = JSON.parse(token.slice(0, -colon.length));
      const names = open.at(-1);
      if (names?.has(name)) return true;
      names?.add(name);
    }
  }
  return false;
}

/** The algorithms that a public key may be used with. */
export const ASYMMETRIC = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;

export type Algorithm = 'HS256' | (typeof ASYMMETRIC)[number];

/** The two members of a token's header that are used; all others are ignored or refused. */
export interface TokenHeader {
  readonly alg: Algorithm;
  readonly kid: string | undefined;
}

const BYTES_MAX = 8_192;
const TYPES = new Set(['jwt', 'at+jwt', 'application/at+jwt']);

type Members = Readonly<Record<string, unknown>>;

/** Strict base64url: every text has one encoding, so a token cannot be altered and still pass. */
function bytesOf(segment: string): Buffer {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : refuse('not base64url');
}

function membersOf(segment: string): Members {
  const bytes = bytesOf(segment);
  if (!isUtf8(bytes)) return refuse('not UTF-8');
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse('not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('not an object');
  }
  if (hasDuplicateMembers(text)) return refuse('a member is named twice');
  return value as Members;
}

/**
 * Reads the header of a token and checks the form of all of it, before any key is looked for.
 * `jku`, `jwk`, `x5c` and `x5u` are never read: keys come from the configuration alone.
 *
 * @param allowed the algorithms that the configured keys may be used with
 * @throws Problem invalid_token
 */
export function headerOf(token: string, allowed: readonly Algorithm[]): TokenHeader {
  if (Buffer.byteLength(token) > BYTES_MAX) refuse('too long');
  const segments = token.split('.');
  const [head = '', payload = '', signature = ''] = segments;
  if (segments.length !== 3 || signature === '') refuse('not three segments');
  bytesOf(signature);
  membersOf(payload);
  const header = membersOf(head);
  const alg = allowed.find((each) => each === header['alg']) ?? refuse('another algorithm');
  // RFC 7515, section 4.1.11: no extension is understood here, so each critical one is refused.
  if ('crit' in header) refuse('a critical extension');
  const { typ, kid } = header;
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.has(typ.toLowerCase()))) {
    refuse('another type');
  }
  if (kid !== undefined && typeof kid !== 'string') return refuse('kid is not a text');
  return { alg, kid };
}

/** The rules for the claims of a token. */
export interface TokenRules {
  readonly issuer: string;
  readonly audience: string;
  /** Longest life, exp − iat, of a token that says when it was issued. */
  readonly lifetimeMaxSeconds: number;
  /** Tolerance for clocks that differ. */
  readonly leewaySeconds: number;
}

export type Claims = Readonly<Record<string, unknown>>;

const SCOPES_MAX = 100;

const textOf = (claim: unknown, name: string): string =>
  typeof claim === 'string' && claim !== '' ? claim : refuse(`${name} is not a text`);

/** A time in whole seconds since 1970; the limit keeps it a date that JavaScript can show. */
function timeOf(claim: unknown, name: string): number {
  const isTime = Number.isSafeInteger(claim) && Math.abs(claim as number) <= 8.64e12;
  return isTime ? (claim as number) : refuse(`${name} is not a time`);
}

const optionalTimeOf = (claim: unknown, name: string): number | undefined =>
  claim === undefined ? undefined : timeOf(claim, name);

function checkAudience(claim: unknown, ours: string): void {
  const list = Array.isArray(claim) ? claim : [claim];
  if (!list.every((each) => typeof each === 'string')) refuse('aud is not a text');
  if (!list.includes(ours)) refuse('aud is another');
}

function listOf(claim: unknown, name: string): string[] {
  if (claim === undefined) return [];
  if (typeof claim === 'string') return claim.split(' ').filter((each) => each !== '');
  const isList = Array.isArray(claim) && claim.every((each) => typeof each === 'string');
  // RFC 9068 makes `scope` a text; a list there is a mistake of the issuer.
  return isList && name !== 'scope' ? claim : refuse(`${name} is of another type`);
}

/** All that the three claims name; what is no scope of ours opens nothing and does no harm. */
function scopesOf(claims: Claims): Set<string> {
  const named = ['scope', 'scp', 'scopes'].flatMap((name) => listOf(claims[name], name));
  return named.length <= SCOPES_MAX ? new Set(named) : refuse('too many scopes');
}

/**
 * Judges the claims of a token whose signature is good. RFC 7519, RFC 8725 and RFC 9068; the
 * expiry comes last, so that `token_expired` means that nothing else is wrong.
 *
 * @param nowSeconds the time to judge by, in seconds since 1970
 * @throws Problem invalid_token or token_expired
 */
export function principalOf(claims: Claims, rules: TokenRules, nowSeconds: number): Principal {
  if (textOf(claims['iss'], 'iss') !== rules.issuer) refuse('iss is another');
  checkAudience(claims['aud'], rules.audience);
  const id = textOf(claims['sub'], 'sub');
  const exp = timeOf(claims['exp'], 'exp');
  const nbf = optionalTimeOf(claims['nbf'], 'nbf');
  const iat = optionalTimeOf(claims['iat'], 'iat');
  if (nbf !== undefined && nowSeconds < nbf - rules.leewaySeconds) refuse('not valid yet');
  if (iat !== undefined && nowSeconds < iat - rules.leewaySeconds) refuse('not issued yet');
  if (iat !== undefined && exp - iat > rules.lifetimeMaxSeconds) refuse('lives too long');
  const scopes = scopesOf(claims);
  if (nowSeconds >= exp + rules.leewaySeconds) throw expiredToken();
  const expiresAt = new Date(exp * 1000).toISOString();
  return { kind: 'token', id, scopes, expiresAt, limits: null };
}
