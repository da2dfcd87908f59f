import { checkToken } from '../app/check-token.ts';
import type { Principal } from '../auth/credentials.ts';
import { ALL_MARKETS, marketsOpenTo, SCOPES } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import { Problem } from '../errors.ts';
import { readCommandConfig, withDevelopmentSecret } from '../process/environment.ts';
import { EXIT, UsageError } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';
import { maskerOf } from '../std/secrets.ts';
import { command, json } from './command.ts';
import { printLines, timeText } from './output.ts';
import { hintsOf } from './token-hints.ts';

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
  stdin.setEncoding('utf8');
  let text = '';
  // An iteration ends for every kind of input: a file at its end has no event `close`.
  for await (const part of stdin) {
    text += part;
    if (text.length > INPUT_CHARACTERS_MAX) break;
  }
  const token = text.trim().replace(/^Bearer +/i, '');
  if (token === '') throw new UsageError('standard input has no token');
  if (/[^\x21-\x7e]/.test(token)) throw new UsageError('standard input has more than one token');
  return token;
}

function resultOf(result: Principal | Problem, token: string, config: Config): TokenCheck {
  const hide = maskerOf(token);
  const hints = hintsOf(token, config);
  const scopes = hints.scopes.map(hide);
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
      hints: [...(code === 'invalid_token' ? hints.claims.map(hide) : []), ...scopes],
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
    hints: result.scopes.has(ALL_MARKETS) ? [] : scopes,
  };
}

function print(check: TokenCheck): void {
  const { accepted, code, reason, subject, scopes, markets, unknownScopes } = check;
  const { expiresAt, hints } = check;
  const state = accepted
    ? [
        markets.length > 0
          ? 'The service accepts this token.'
          : 'The token is valid, but it opens no market.',
        `  subject  ${subject}`,
        `  scopes   ${scopes.join(' ') || 'none'}`,
        ...(unknownScopes.length > 0
          ? [`  unknown  ${unknownScopes.join(' ').slice(0, 400)}`]
          : []),
        `  expires  ${timeText(expiresAt ?? '')}`,
      ]
    : [`The service refuses this token (${code}): ${reason?.replace(/\.$/, '')}.`];
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
