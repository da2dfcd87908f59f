import type { Command } from 'commander';
import { showKey } from '../../auth/key-info.ts';
import { createKey, rotateKey } from '../../auth/keys.ts';
import { withDatabase } from '../database.ts';
import { timeText } from '../output.ts';
import {
  type ExpiryOptions,
  expiryOf,
  type LimitOptions,
  limitsOf,
  spanOf,
  splitScopes,
} from './arguments.ts';
import { actor, printMade } from './shown.ts';

interface CreateOptions extends ExpiryOptions, LimitOptions {
  readonly name: string;
  readonly owner?: string;
  readonly scope: string[];
  readonly json?: true;
}

const EXPIRES = 'a number of days (30d) or a day (2030-12-31, UTC); ';

async function create(options: CreateOptions): Promise<void> {
  const expiresAt = expiryOf(options);
  const limits = limitsOf(options);
  const { name, owner = null, scope: scopes } = options;
  const made = await withDatabase({ schema: true }, ({ db }) =>
    createKey(db, { name, owner, scopes, expiresAt, limits }, { actor: actor() }),
  );
  printMade(made, options.json === true);
}

/** Adds `keys create`. */
export function addCreate(keys: Command): void {
  keys
    .command('create')
    .summary('make a key; it is shown once')
    .description('Makes an API key and shows it, this once.')
    .requiredOption('--name <text>', 'what the key is for')
    .requiredOption(
      '--scope <scope...>',
      'prices:<market> or prices:*; repeat it, or separate with commas',
      splitScopes,
    )
    .option('--owner <text>', 'who answers for it')
    .option('--expires <when>', `${EXPIRES}365 days when not given`)
    .option('--no-expiry', 'let it never end')
    .option('--rate <limit>', 'its own rate limit, as 600/min; 0 for none')
    .option('--burst <n>', 'requests at once within the rate; a tenth of it when not given')
    .option('--concurrency <n>', 'its own limit of requests at the same time; 0 for none')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Examples:
  npm run --silent prices -- keys create --name "desk 4" --scope prices:nickel,prices:cobalt
  npm run --silent prices -- keys create --name all --scope 'prices:*' --expires 30d --json`,
    )
    .action(create);
}

interface RotateOptions extends ExpiryOptions {
  readonly grace: string;
  readonly reason?: string;
  readonly json?: true;
}

async function rotate(id: string, options: RotateOptions): Promise<void> {
  const rotation = {
    graceMs: spanOf('--grace', options.grace),
    expiresAt: options.expires === undefined && options.expiry ? 'as-before' : expiryOf(options),
  } as const;
  const { reason } = options;
  const { made, old } = await withDatabase({ schema: true }, async ({ db }) => ({
    made: await rotateKey(db, id, rotation, { actor: actor(), reason }),
    old: await showKey(db, id),
  }));
  if (options.json !== true) {
    const end = old.expiresAt === null || old.status === 'revoked' ? null : timeText(old.expiresAt);
    process.stderr.write(`The key ${id} ${end === null ? 'ended now' : `works until ${end}`}.\n`);
  }
  printMade(made, options.json === true);
}

/** Adds `keys rotate`. */
export function addRotate(keys: Command): void {
  keys
    .command('rotate')
    .summary('make a key that takes the place of another')
    .description(
      'Makes a key with the name, owner, scopes and limits of another, which works on for a while.',
    )
    .argument('<id>', 'the 10 characters after cps_live_ of the old key')
    .option('--grace <span>', 'how long the old key works on: 24h, 15m, 7d, or 0', '24h')
    .option(
      '--expires <when>',
      `${EXPIRES}as many days as the old key had when not given, or 365 where it never ends`,
    )
    .option('--no-expiry', 'let the new key never end')
    .option('--reason <text>', 'why; kept in the audit table')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Example:
  npm run --silent prices -- keys rotate 7hQ2mB9xTa --grace 24h`,
    )
    .action(rotate);
}
