import type { Command } from 'commander';
import { type KeyEvent, type KeyInfo, listKeys, readAudit, showKey } from '../../auth/key-info.ts';
import { createKey, revokeKey, rotateKey } from '../../auth/keys.ts';
import { actor } from '../actor.ts';
import { withDatabase } from '../database.ts';
import { UsageError } from '../failure.ts';
import { printJson, printTable, timeText } from '../output.ts';
import {
  type ExpiryOptions,
  expiryOf,
  type LimitOptions,
  limitsOf,
  spanOf,
  splitScopes,
} from './arguments.ts';
import { printKey, printKeyData, printMade, whenText } from './shown.ts';

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

function addRotate(keys: Command): void {
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

/** Whether a key that works was not used for a span, nor made within it. */
const isUnused = ({ status, lastUsedAt, createdAt }: KeyInfo, sinceMs: number): boolean =>
  status === 'active' && Date.parse(lastUsedAt ?? createdAt) < sinceMs;

/** The width of a column of texts that anybody may make as long as they like. */
const WIDTH = 40;

/** The beginning of a long text; `keys show` has the whole. */
const clipped = (text: string): string =>
  text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text;

function addLists(keys: Command): void {
  keys
    .command('list')
    .summary('every key, oldest first')
    .description('Lists every key, oldest first; never the secret part.')
    .option('--unused <span>', 'only keys that work and were not used for so long, as 90d')
    .option('--json', 'print data for a program')
    .addHelpText('after', '\nExample:\n  npm run --silent prices -- keys list --unused 90d')
    .action(async ({ unused, json }: { unused?: string; json?: true }) => {
      const since = unused === undefined ? null : Date.now() - spanOf('--unused', unused);
      const all = await withDatabase({ schema: true }, ({ db }) => listKeys(db));
      const chosen = since === null ? all : all.filter((key) => isUnused(key, since));
      if (json) return printKeyData(chosen);
      printTable(chosen, {
        id: (key) => key.id,
        name: (key) => key.name,
        owner: ({ owner }) => owner && clipped(owner),
        status: (key) => key.status,
        expires: (key) => whenText(key.expiresAt),
        used: (key) => whenText(key.lastUsedAt),
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
      if (options.json) printKeyData(key);
      else printKey(key);
    });
}

/** What the audit keeps of a key, or of one of its scopes, that is told. */
type Side = { readonly scope?: string; readonly replaced_by?: string | null } | null;

/**
 * Which scope an event gave to a key or took from it, and which key takes the place of which; empty
 * for events that say it themselves.
 */
function changeOf({ before, after, replaces }: KeyEvent): string {
  const [was, is] = [before as Side, after as Side];
  if (is?.scope !== undefined) return `scope ${is.scope} given`;
  if (was?.scope !== undefined) return `scope ${was.scope} taken`;
  if (replaces !== null) return `replaces ${replaces}`;
  const heir = is?.replaced_by ?? null;
  return heir === null || heir === was?.replaced_by ? '' : `replaced by ${heir}`;
}

function addAudit(keys: Command): void {
  keys
    .command('audit')
    .summary('what was done to keys, newest first')
    .description('Shows what was done to keys, by whom and why, newest first.')
    .argument('[id]', 'only of one key')
    .option('--limit <n>', 'so many entries at most', '100')
    .option('--json', 'print data for a program, with before and after')
    .addHelpText('after', '\nExample:\n  npm run --silent prices -- keys audit 7hQ2mB9xTa')
    .action(async (id: string | undefined, options: { limit: string; json?: true }) => {
      if (!/^[1-9]\d{0,5}$/.test(options.limit)) {
        throw new UsageError(`--limit: "${options.limit}" is not a number from 1 to 999999`);
      }
      const limit = Number(options.limit);
      const events = await withDatabase({ schema: true }, ({ db }) => readAudit(db, { id, limit }));
      if (options.json) return printJson(events);
      printTable(events, {
        at: (event) => timeText(event.at),
        actor: (event) => event.actor,
        action: (event) => event.action,
        id: (event) => event.id,
        change: changeOf,
        reason: (event) => event.reason,
      });
    });
}

function addRevoke(keys: Command): void {
  keys
    .command('revoke')
    .summary('end a key for good')
    .description('Ends a key for good. A key that was revoked before keeps its first reason.')
    .argument('<id>', 'the 10 characters after cps_live_')
    .requiredOption('--reason <text>', 'why; kept with the key and in the audit table')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Example:
  npm run --silent prices -- keys revoke 7hQ2mB9xTa --reason "left the company"`,
    )
    .action(async (id: string, options: { reason: string; json?: true }) => {
      const key = await withDatabase({ schema: true }, ({ db }) =>
        revokeKey(db, id, options.reason, { actor: actor() }),
      );
      if (options.json) printKeyData(key);
      else printKey(key);
    });
}

/** Adds `keys create`, `list`, `show`, `rotate`, `revoke` and `audit`. */
export function addKeyCommands(program: Command): void {
  const keys = program
    .command('keys')
    .summary('make, list, rotate and revoke API keys')
    .description('Makes, lists, shows, rotates and revokes API keys.');
  addCreate(keys);
  addLists(keys);
  addRotate(keys);
  addRevoke(keys);
  addAudit(keys);
}
