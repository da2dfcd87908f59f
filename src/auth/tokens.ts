import type { Principal } from './principal.ts';
import { expiredToken, invalidToken } from './refusals.ts';

/** What the claims of a token must say. */
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

const refuse = (why: string): never => {
  throw invalidToken(new Error(why));
};

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
