import { SignJWT } from 'jose';
import type { ScopeClaim } from '../auth/tokens/tokens.ts';
import { scopesOf } from '../catalog/scopes.ts';
import type { Config } from '../config/config.ts';
import { scopeClaimsOf } from '../config/scope-claims.ts';
import { readCommandConfig, withDevelopmentSecret } from '../process/environment.ts';
import { UsageError } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';
import { command, json, option, required, wholeOf } from './command.ts';
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

/** Signs a token (HS256) for development. @throws UnknownScopeError for an unknown scope */
export function createDevelopmentToken(request: DevelopmentToken): Promise<string> {
  const issuedAt = Math.floor(Date.now() / 1000);
  const { name, prefix } = request.claim;
  const scopes = scopesOf(request.scopes).map((each) => `${prefix}${each}`);
  return new SignJWT({ [name]: scopes.join(' ') })
    .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
    .setIssuer(request.issuer)
    .setAudience(request.audience)
    .setSubject(request.subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + request.lifetimeSeconds)
    .sign(Buffer.from(request.secret));
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

/** Adds `token create`. */
const addTokenCreate = command({
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
    const lifetimeMax = config.JWT_LIFETIME_MAX_SECONDS;
    const lifetimeSeconds = wholeOf('--lifetime', options.lifetime, 1, lifetimeMax);
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

export const TOKEN_COMMANDS = [addCheck, addTokenCreate];
