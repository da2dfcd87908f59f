import { SCOPES } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import { scopeClaimsOf } from '../config/scope-claims.ts';

type Claims = Readonly<Record<string, unknown>>;

/** The unverified claims of a token, for hints only; empty for another text. */
function claimsOf(token: string): Claims {
  try {
    const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Claims) : {};
  } catch {
    return {};
  }
}

/** The texts of a claim: a list, or a text separated by spaces. */
function textsOf(claim: unknown): string[] {
  if (typeof claim === 'string') return claim.split(' ').filter((each) => each !== '');
  return Array.isArray(claim) ? claim.filter((each) => typeof each === 'string') : [];
}

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 200) ?? 'absent';

/** The prefix of a text that ends with a scope of this service; null for another text. */
function prefixOf(text: string): string | null {
  const scope = SCOPES.find((each) => text.endsWith(each));
  return scope === undefined ? null : text.slice(0, -scope.length);
}

/** Claims with scopes that JWT_SCOPE_CLAIMS does not name, and how it would name them. */
function scopeHints(claims: Claims, config: Config): string[] {
  const named = scopeClaimsOf(config.JWT_SCOPE_CLAIMS);
  return Object.entries(claims).flatMap(([name, claim]) => {
    const found = textsOf(claim).map(prefixOf);
    const prefix = found.find((each) => each !== null) ?? null;
    const isRead = named.some((each) => each.name === name && each.prefix === prefix);
    if (prefix === null || isRead) return [];
    const setting = prefix === '' ? name : `${name}=${prefix}`;
    return [`the claim ${name} has scopes: JWT_SCOPE_CLAIMS=${setting} reads them`];
  });
}

/** The required claims that the token lacks, each beside its own value. */
function claimHints(claims: Claims, { JWT_ISSUER, JWT_AUDIENCE }: Config): string[] {
  const audiences = [claims['aud']].flat();
  const isIssuer = claims['iss'] === JWT_ISSUER;
  const issuer = `iss is ${shown(claims['iss'])}, and JWT_ISSUER is ${shown(JWT_ISSUER)}`;
  const audience = `aud is ${shown(claims['aud'])}, and JWT_AUDIENCE is ${shown(JWT_AUDIENCE)}`;
  return [...(isIssuer ? [] : [issuer]), ...(audiences.includes(JWT_AUDIENCE) ? [] : [audience])];
}

/** Hints about a token, from its unverified claims. They may contain parts of the token. */
interface TokenHints {
  /** The claims with scopes that the service does not read. */
  readonly scopes: readonly string[];
  /** The required claims that a refused token lacks. */
  readonly claims: readonly string[];
}

/** Compares the claims of a token with the settings of the service. */
export function hintsOf(token: string, config: Config): TokenHints {
  const claims = claimsOf(token);
  return { scopes: scopeHints(claims, config), claims: claimHints(claims, config) };
}
