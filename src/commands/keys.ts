import type { Command } from 'commander';
import {
  createKey,
  KEY_LIFETIME_DAYS,
  type KeyInfo,
  listKeys,
  revokeKey,
  showKey,
} from '../auth/keys.ts';
import { withDatabase } from './database.ts';
import { UsageError } from './failure.ts';
import { printJson, printLines, printTable } from './output.ts';

const DAY_MS = 86_400_000;

interface CreateOptions {
  readonly name: string;
  readonly owner?: string;
  readonly scope: string[];
  readonly expires: string;
  readonly json?: true;
}

/** `never`, a number of days from now, or a day, to whose end in UTC the key lives. */
function expiryOf(text: string): Date | null {
  if (text === 'never') return null;
  if (/^[1-9]\d{0,4}$/.test(text)) return new Date(Date.now() + Number(text) * DAY_MS);
  const end = new Date(`${text}T23:59:59.999Z`);
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text) && end.toJSON()?.startsWith(text);
  if (isDay) return end;
  throw new UsageError(
    `--expires: "${text}" is not a number of days, a day like 2030-12-31 or never`,
  );
}

/** Collects the values of `--scope`, which may be repeated and may hold several each. */
export const splitScopes = (text: string, before: string[] = []): string[] => [
  ...before,
  ...text.split(/[\s,]+/).filter((each) => each !== ''),
];

function printKey(key: KeyInfo): void {
  printLines(
    `id       ${key.id}`,
    `name     ${key.name}`,
    `owner    ${key.owner ?? '–'}`,
    `scopes   ${key.scopes.join(' ')}`,
    `status   ${key.status}`,
    `created  ${key.createdAt}`,
    `expires  ${key.expiresAt ?? 'never'}`,
    ...(key.revokedAt ? [`revoked  ${key.revokedAt} (${key.revokedReason ?? 'no reason'})`] : []),
  );
}

async function create(options: CreateOptions): Promise<void> {
  const expiresAt = expiryOf(options.expires);
  const made = await withDatabase({ schema: true }, ({ db }) =>
    createKey(db, {
      name: options.name,
      owner: options.owner ?? null,
      scopes: options.scope,
      expiresAt,
    }),
  );
  if (options.json) return printJson(made);
  printKey(made);
  printLines('', made.key, '', 'The key is shown this once; the database keeps only its digest.');
}

function addCreate(keys: Command): void {
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
    .option(
      '--expires <when>',
      'a number of days, a day (2030-12-31, UTC), or never',
      String(KEY_LIFETIME_DAYS),
    )
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Examples:
  npm run --silent prices -- keys create --name "desk 4" --scope prices:nickel,prices:cobalt
  npm run --silent prices -- keys create --name all --scope 'prices:*' --expires 30 --json`,
    )
    .action(create);
}

function addRevoke(keys: Command): void {
  keys
    .command('revoke')
    .summary('end a key for good')
    .description('Ends a key for good. A key that was revoked before keeps its first reason.')
    .argument('<id>', 'the 10 characters after cps_live_')
    .option('--reason <text>', 'why; kept with the key', 'revoked on the command line')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Example:
  npm run --silent prices -- keys revoke 7hQ2mB9xTa --reason "left the company"`,
    )
    .action(async (id: string, options: { reason: string; json?: true }) => {
      const key = await withDatabase({ schema: true }, ({ db }) =>
        revokeKey(db, id, options.reason),
      );
      if (options.json) printJson(key);
      else printKey(key);
    });
}

/** Adds `keys create`, `keys list`, `keys show` and `keys revoke`. */
export function addKeyCommands(program: Command): void {
  const keys = program
    .command('keys')
    .summary('make, list and revoke API keys')
    .description('Makes, lists, shows and revokes API keys.');
  addCreate(keys);
  keys
    .command('list')
    .summary('every key, oldest first')
    .description('Lists every key, oldest first; never the secret part.')
    .option('--json', 'print data for a program')
    .addHelpText('after', '\nExample:\n  npm run --silent prices -- keys list --json')
    .action(async (options: { json?: true }) => {
      const all = await withDatabase({ schema: true }, ({ db }) => listKeys(db));
      if (options.json) return printJson(all);
      printTable(all, {
        id: (key) => key.id,
        name: (key) => key.name,
        owner: (key) => key.owner,
        status: (key) => key.status,
        expires: (key) => key.expiresAt?.slice(0, 10) ?? 'never',
        scopes: (key) => key.scopes,
      });
    });
  keys
    .command('show')
    .summary('one key by its id')
    .description('Shows all that may be shown of one key.')
    .argument('<id>', 'the 10 characters after cps_live_')
    .option('--json', 'print data for a program')
    .addHelpText('after', '\nExample:\n  npm run --silent prices -- keys show 7hQ2mB9xTa')
    .action(async (id: string, options: { json?: true }) => {
      const key = await withDatabase({ schema: true }, ({ db }) => showKey(db, id));
      if (options.json) printJson(key);
      else printKey(key);
    });
  addRevoke(keys);
}
