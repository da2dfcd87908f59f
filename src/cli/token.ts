import type { Command } from 'commander';
import { SignJWT } from 'jose';
import { scopesOf } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import { readCommandConfig, withDevelopmentSecret } from '../process/environment.ts';
import { UsageError } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';
import { type ScopeClaim, scopeClaimsOf } from '../std/scope-claims.ts';
import { command, json, option, required } from './command.ts';
import { splitScopes } from './keys/arguments.ts';
import { printLines } from './output.ts';
import { addCheck } from './token-check.ts';

interface DevelopmentToken {
  /** The JWT_SECRET of the service: at least 32 bytes. */
  readonly secret: string;
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly scopes: readonly string[];
  /** The claim that names the scopes. */
  readonly claim: ScopeClaim;
  readonly lifetimeSeconds: number;
}

/**
 * Signs a token (HS256) for development.
 * @throws UnknownScopeError for an unknown scope, RangeError for a lifetime that is not positive,
 *   TypeError for a secret that is too short
 */
export async function createDevelopmentToken(request: DevelopmentToken): Promise<string> {
  const { lifetimeSeconds } = request;
  if (!Number.isSafeInteger(lifetimeSeconds) || lifetimeSeconds <= 0) {
    throw new RangeError('the lifetime must be a positive number of whole seconds');
  }
  const secret = Buffer.from(request.secret);
  if (secret.length < 32) throw new TypeError('JWT_SECRET: must have at least 32 bytes');
  const issuedAt = Math.floor(Date.now() / 1000);
  const { name, prefix } = request.claim;
  const scopes = scopesOf(request.scopes).map((each) => `${prefix}${each}`);
  return new SignJWT({ [name]: scopes.join(' ') })
    .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
    .setIssuer(request.issuer)
    .setAudience(request.audience)
    .setSubject(request.subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + lifetimeSeconds)
    .sign(secret);
}

interface TokenOptions {
  readonly scope: string[];
  readonly subject: string;
  readonly lifetime: string;
}

/** The reason why these settings cannot sign a token; it begins with the setting. */
function whyUnsigned(config: Config): string {
  const other = (['JWT_PUBLIC_KEY_FILE', 'JWT_JWKS_URL'] as const).find((each) => config[each]);
  return other === undefined
    ? 'JWT_SECRET: not set here; give it as the service has it, which takes no tokens without one'
    : `${other}: set, so that the tokens of this service come from its issuer; only a service ` +
        'with JWT_SECRET in its place takes tokens that are signed here';
}

const addCreate = command({
  name: 'create',
  summary: 'sign a token with JWT_SECRET',
  description:
    'Signs a token (HS256) with JWT_SECRET; with the development secret in DATA_DIR where ' +
    'neither DATABASE_URL nor a setting of tokens is given.',
  options: [
    required(
      '--scope <scope...>',
      'prices:<market> or prices:*; repeat it, or separate with commas',
    ).argParser(splitScopes),
    option('--subject <text>', 'the claim sub').default('development'),
    option('--lifetime <seconds>', 'life of the token in seconds').default('3600'),
    json(),
  ],
  help: `
Example:
  curl -H "Authorization: Bearer $(${PROGRAM} token create --scope 'prices:*')" …`,
  async run(options: TokenOptions) {
    const given = readCommandConfig();
    const config = await withDevelopmentSecret(given);
    if (config.JWT_SECRET === undefined) throw new UsageError(whyUnsigned(config));
    const most = config.JWT_LIFETIME_MAX_SECONDS;
    const lifetimeSeconds = /^[1-9]\d{0,8}$/.test(options.lifetime) ? Number(options.lifetime) : 0;
    if (lifetimeSeconds === 0 || lifetimeSeconds > most) {
      throw new UsageError(`--lifetime: from 1 to ${most} seconds (JWT_LIFETIME_MAX_SECONDS)`);
    }
    const token = await createDevelopmentToken({
      secret: config.JWT_SECRET,
      issuer: config.JWT_ISSUER,
      audience: config.JWT_AUDIENCE,
      subject: options.subject,
      scopes: options.scope,
      claim: scopeClaimsOf(config.JWT_SCOPE_CLAIMS)[0] as ScopeClaim,
      lifetimeSeconds,
    });
    if (given.JWT_SECRET === undefined) {
      // A terminal without the settings of the service creates a token that the service rejects.
      process.stderr.write(
        `Signed with the development secret in ${config.DATA_DIR}: only a service that was ` +
          'started on this folder, without DATABASE_URL and settings of tokens, takes it.\n',
      );
    }
    return { data: { token, lifetimeSeconds }, print: () => printLines(token) };
  },
});

/** Adds `token check` and `token create`. */
export function addTokenCommands(token: Command): void {
  addCheck(token);
  addCreate(token);
}
