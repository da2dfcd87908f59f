import type { Command } from 'commander';
import { type KeyEvent, readAudit } from '../../auth/key-audit.ts';
import { type KeyInfo, listKeys, showKey } from '../../auth/key-info.ts';
import { withDatabase } from '../database.ts';
import { UsageError } from '../failure.ts';
import { printJson, printTable, timeText } from '../output.ts';
import { spanOf } from './arguments.ts';
import { printKey, printKeyData, whenText } from './shown.ts';

/** Whether a key that works was not used for a span, nor made within it. */
const isUnused = ({ status, lastUsedAt, createdAt }: KeyInfo, sinceMs: number): boolean =>
  status === 'active' && Date.parse(lastUsedAt ?? createdAt) < sinceMs;

/** The width of a column of texts that anybody may make as long as they like. */
const WIDTH = 40;

/** The beginning of a long text; `keys show` has the whole. */
const clipped = (text: string): string =>
  text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text;

/** Adds `keys list` and `keys show`. */
export function addLists(keys: Command): void {
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

/** Adds `keys audit`. */
export function addAudit(keys: Command): void {
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
