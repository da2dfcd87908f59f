import type { Command } from 'commander';
import { createDevelopmentToken } from '../auth/development-token.ts';
import { hasTokenSetting, withDevelopmentSecret } from './development.ts';
import { readConfig } from './environment.ts';
import { UsageError } from './failure.ts';
import { splitScopes } from './keys/arguments.ts';
import { printJson, printLines } from './output.ts';

interface TokenOptions {
  readonly scope: string[];
  readonly subject: string;
  readonly lifetime: string;
  readonly json?: true;
}

async function create(options: TokenOptions): Promise<void> {
  const config = await withDevelopmentSecret(readConfig());
  if (config.JWT_SECRET === undefined) {
    throw new UsageError(
      hasTokenSetting(config)
        ? 'JWT_SECRET: tokens of this service come from its issuer; only a secret can sign here'
        : 'JWT_SECRET: not set, so this service takes no tokens',
    );
  }
  const lifetimeSeconds = /^[1-9]\d{0,8}$/.test(options.lifetime) ? Number(options.lifetime) : 0;
  if (lifetimeSeconds === 0 || lifetimeSeconds > config.JWT_LIFETIME_MAX_SECONDS) {
    throw new UsageError(
      `--lifetime: from 1 to ${config.JWT_LIFETIME_MAX_SECONDS} seconds (JWT_LIFETIME_MAX_SECONDS)`,
    );
  }
  const token = await createDevelopmentToken({
    secret: config.JWT_SECRET,
    issuer: config.JWT_ISSUER,
    audience: config.JWT_AUDIENCE,
    subject: options.subject,
    scopes: options.scope,
    lifetimeSeconds,
  });
  if (options.json) printJson({ token, lifetimeSeconds });
  else printLines(token);
}

/** Adds `token create`. */
export function addTokenCommands(program: Command): void {
  program
    .command('token')
    .summary('sign a bearer token for development')
    .description('Bearer tokens for trying the service out.')
    .command('create')
    .summary('sign a token with JWT_SECRET')
    .description('Signs a token (HS256) with JWT_SECRET, or with the secret in DATA_DIR.')
    .requiredOption(
      '--scope <scope...>',
      'prices:<market> or prices:*; repeat it, or separate with commas',
      splitScopes,
    )
    .option('--subject <text>', 'the claim sub', 'development')
    .option('--lifetime <seconds>', 'life of the token in seconds', '3600')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Example:
  curl -H "Authorization: Bearer $(npm run --silent prices -- token create --scope 'prices:*')" …`,
    )
    .action(create);
}
