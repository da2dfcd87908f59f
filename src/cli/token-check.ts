import { once } from 'node:events';
import { checkToken } from '../app/check-token.ts';
import type { Principal } from '../auth/credentials.ts';
import { ALL_MARKETS, marketsOpenTo, SCOPES } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import { scopeClaimsOf } from '../config/scope-claims.ts';
import { Problem } from '../errors.ts';
import { readCommandConfig, withDevelopmentSecret } from '../process/environment.ts';
import { EXIT, UsageError } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';
import { maskerOf } from '../std/secrets.ts';
import { command, json } from './command.ts';
import { printLines, timeText } from './output.ts';

/** The result of a check. Texts never hold the token. */
interface TokenCheck {
  readonly accepted: boolean;
  /** Code of the refusal: `invalid_token`, `token_expired` or `auth_unavailable`. */
  readonly code: string | null;
  readonly reason: string | null;
  readonly subject: string | null;
  /** The scopes that this service knows. */
  readonly scopes: readonly string[];
  readonly markets: readonly string[];
  /** Scopes in the claims of JWT_SCOPE_CLAIMS that this service does not know. */
  readonly unknownScopes: readonly string[];
  readonly expiresAt: string | null;
  readonly hints: readonly string[];
}

/** More than a header of a request can have. */
const INPUT_CHARACTERS_MAX = 65_536;

/** Reads the token from standard input: an argument would be in the list of processes. */
async function readToken(): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY) process.stderr.write('Paste the token, then press Enter and Ctrl-D:\n');
  let text = '';
  stdin.setEncoding('utf8');
  stdin.on('data', (part: string) => {
    text += part;
    if (text.length > INPUT_CHARACTERS_MAX) stdin.destroy();
  });
  await once(stdin, 'close');
  const token = text.trim().replace(/^Bearer +/i, '');
  if (token === '') throw new UsageError('standard input has no token');
  if (/[^\x21-\x7e]/.test(token)) throw new UsageError('standard input has more than one token');
  return token;
}

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

function resultOf(result: Principal | Problem, token: string, config: Config): TokenCheck {
  const hide = maskerOf(token);
  const claims = claimsOf(token);
  const hints = scopeHints(claims, config).map(hide);
  if (result instanceof Problem) {
    const { cause, code, message } = result;
    return {
      accepted: false,
      code,
      reason: hide(cause instanceof Error ? cause.message : message),
      subject: null,
      scopes: [],
      markets: [],
      unknownScopes: [],
      expiresAt: null,
      hints: [...(code === 'invalid_token' ? claimHints(claims, config).map(hide) : []), ...hints],
    };
  }
  const known = new Set<string>(SCOPES);
  return {
    accepted: true,
    code: null,
    reason: null,
    subject: result.id,
    scopes: SCOPES.filter((each) => result.scopes.has(each)),
    markets: marketsOpenTo(result.scopes),
    unknownScopes: [...result.scopes].filter((each) => !known.has(each)),
    expiresAt: result.expiresAt,
    hints: result.scopes.has(ALL_MARKETS) ? [] : hints,
  };
}

function print(check: TokenCheck): void {
  const { accepted, code, reason, subject, scopes, unknownScopes, expiresAt, hints } = check;
  const state = accepted
    ? [
        'The service accepts this token.',
        `  subject  ${subject}`,
        `  scopes   ${scopes.join(' ') || 'none: it opens no market'}`,
        ...(unknownScopes.length > 0
          ? [`  unknown  ${unknownScopes.join(' ').slice(0, 400)}`]
          : []),
        `  expires  ${timeText(expiresAt ?? '')}`,
      ]
    : [`The service refuses this token (${code}): ${reason}.`];
  printLines(...state, ...hints.map((each) => `  hint     ${each}`));
}

/** Adds `token check`. */
export const addCheck: ReturnType<typeof command> = command({
  name: 'check',
  summary: 'tell whether the service accepts a token, and its scopes',
  description:
    'Reads a bearer token from standard input and checks it as the service does, with the same ' +
    'settings: signature, claims, expiry and scopes. It never prints the token. No database is ' +
    'needed; with JWT_JWKS_URL it fetches the key set.',
  options: [json()],
  help: `
Run it with the settings of the service. Exit codes: 0 the token is accepted and opens a market,
3 it is refused or opens none, 1 it could not be checked, 2 a setting or the input is wrong.

Examples:
  ${PROGRAM} token check < token.txt
  ${PROGRAM} token create --scope 'prices:*' | ${PROGRAM} token check --json`,
  async run() {
    const config = await withDevelopmentSecret(readCommandConfig());
    const token = await readToken();
    const checked = await checkToken(config, token);
    if (checked === null) {
      throw new UsageError(
        'JWT_JWKS_URL: no setting names an issuer, so the service refuses every token; set this, ' +
          'JWT_PUBLIC_KEY_FILE or JWT_SECRET as the service has it',
      );
    }
    const result = resultOf(checked, token, config);
    const isUnknown = result.code === 'auth_unavailable';
    const refused = isUnknown ? EXIT.failed : EXIT.refused;
    const exitCode = result.markets.length > 0 ? EXIT.ok : refused;
    return { data: result, print: () => print(result), exitCode };
  },
});
