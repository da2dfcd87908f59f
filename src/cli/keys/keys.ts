import { type KeyEvent, type KeyInfo, listKeys, readAudit, showKey } from '../../auth/keys/info.ts';
import { createKey, type NewKeyInfo, revokeKey, rotateKey } from '../../auth/keys/keys.ts';
import { SETTINGS } from '../../config/settings.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { PROGRAM } from '../../std/program.ts';
import {
  actorOf,
  actorText,
  by,
  type CommandResult,
  command,
  json,
  option,
  required,
  wholeOf,
} from '../command.ts';
import { type Work, withDatabase } from '../database.ts';
import { printLines, printTable, timeText } from '../output.ts';
import {
  type ExpiryOptions,
  expiryOf,
  type LimitOptions,
  limitsOf,
  spanOf,
  splitScopes,
} from './arguments.ts';

/*
 * The commands of `keys`: they create, list, change and revoke API keys. `arguments.ts` parses
 * their options.
 */

const { default: DEFAULT_RATE } = SETTINGS.RATE_PER_MINUTE;

/** The command does not know the settings of the service, which runs elsewhere. */
const SERVICE_LIMITS = `those of the service (RATE_PER_MINUTE, ${DEFAULT_RATE} when not set)`;

function limitsText(limits: KeyLimits | null): string {
  if (limits === null) return SERVICE_LIMITS;
  const { perMinute, burst, concurrent } = limits;
  const parts: string[] = [];
  if (perMinute !== null) {
    parts.push(perMinute === 0 ? 'any rate' : `${perMinute}/min, burst ${burst}`);
  }
  if (concurrent !== null) {
    parts.push(concurrent === 0 ? 'any number at a time' : `${concurrent} at a time`);
  }
  return parts.join(', ');
}

/** A key's own limits; like in `/v3/me`, null means no limit. */
function limitsData({ perMinute, burst, concurrent }: KeyLimits) {
  const rate = { perMinute: perMinute || null, burst: perMinute ? burst : null };
  return {
    ...(perMinute === null ? {} : rate),
    ...(concurrent === null ? {} : { concurrent: concurrent || null }),
  };
}

/**
 * JSON of a key. `limits` is null if the key has no limits of its own. A limit that defaults to the
 * service is omitted, because null means no limit.
 */
const dataOf = (key: KeyInfo) => ({ ...key, limits: key.limits && limitsData(key.limits) });

/** Text of an instant; `never` for null. */
const whenText = (instant: string | null): string =>
  instant === null ? 'never' : timeText(instant);

/** The public data of a key, one line per member. */
function linesOf(key: KeyInfo): string[] {
  return [
    `id       ${key.id}`,
    `name     ${key.name}`,
    `owner    ${key.owner ?? '–'}`,
    `scopes   ${key.scopes.join(' ')}`,
    `limits   ${limitsText(key.limits)}`,
    `status   ${key.status}`,
    `created  ${timeText(key.createdAt)}`,
    `expires  ${whenText(key.expiresAt)}`,
    `used     ${whenText(key.lastUsedAt)}`,
    ...(key.replaces ? [`replaces ${key.replaces}`] : []),
    ...(key.replacedBy ? [`replaced by ${key.replacedBy}`] : []),
    ...(key.revokedAt === null
      ? []
      : [`revoked  ${timeText(key.revokedAt)} (${key.revokedReason ?? 'no reason'})`]),
  ];
}

const SHOWN_ONCE = 'The key is shown this once; the database keeps only its digest.';

/** The answer of a command about one key. A new key is printed with its secret. */
function answerOf(key: KeyInfo | NewKeyInfo): CommandResult {
  const secret = 'key' in key ? ['', key.key, '', SHOWN_ONCE] : [];
  return { data: dataOf(key), print: () => printLines(...linesOf(key), ...secret) };
}

const ID = 'the 10 characters after cps_live_ or cps_cal_';
const EXPIRES = 'a number of days (30d) or a day (2030-12-31, UTC); ';

interface CreateOptions extends ExpiryOptions, LimitOptions {
  readonly name: string;
  readonly owner?: string;
  readonly scope: string[];
  readonly calendar?: true;
  readonly by?: string;
}

const addCreate = command({
  name: 'create',
  summary: 'make a key; it is shown once',
  description: 'Makes an API key and shows it, this once.',
  options: [
    required('--name <text>', 'what the key is for'),
    required(
      '--scope <scope...>',
      'prices:<market> or prices:*; repeat it, or separate with commas',
    ).argParser(splitScopes),
    option('--calendar', 'a calendar token: it opens GET /v3/calendar alone, also in its address'),
    option('--owner <text>', 'who answers for it'),
    option('--expires <when>', `${EXPIRES}365 days when not given`),
    option('--no-expiry', 'let it never end'),
    option(
      '--rate <limit>',
      'its own rate limit instead of the service’s, as 1200/min; 0 for none',
    ),
    option('--burst <n>', 'requests at once within the rate; a tenth of it when not given'),
    option('--concurrency <n>', 'its own limit of requests at the same time; 0 for none'),
    by(),
    json(),
  ],
  help: `
Examples:
  ${PROGRAM} keys create --name "desk 4" --scope prices:nickel,prices:cobalt
  ${PROGRAM} keys create --name all --scope 'prices:*' --expires 30d --json
  ${PROGRAM} keys create --name outlook --scope 'prices:*' --calendar`,
  async run(options: CreateOptions) {
    const expiresAt = expiryOf(options);
    const limits = limitsOf(options);
    const { name, owner = null, scope: scopes } = options;
    const kind = options.calendar ? ('calendar' as const) : ('live' as const);
    const key = { name, owner, scopes, expiresAt, limits, kind };
    const actor = actorOf(options);
    return answerOf(await withDatabase(({ db }) => createKey(db, key, { actor })));
  },
});

interface RotateOptions extends ExpiryOptions {
  readonly grace: string;
  readonly reason?: string;
  readonly json?: true;
  readonly by?: string;
}

const addRotate = command({
  name: 'rotate',
  summary: 'make a key that takes the place of another',
  description:
    'Makes a key with the name, owner, scopes and limits of another, which works on for a while.',
  args: [['<id>', `${ID} of the old key`]],
  options: [
    option('--grace <span>', 'how long the old key works on: 24h, 15m, 7d, or 0').default('24h'),
    option(
      '--expires <when>',
      `${EXPIRES}as many days as the old key had when not given, or 365 where it never ends`,
    ),
    option('--no-expiry', 'let the new key never end'),
    option('--reason <text>', 'why; kept in the audit table'),
    by(),
    json(),
  ],
  help: `
Example:
  ${PROGRAM} keys rotate 7hQ2mB9xTa --grace 24h`,
  async run(id: string, options: RotateOptions) {
    const { grace, expires, expiry, reason } = options;
    const actor = actorOf(options);
    const rotation = {
      graceMs: spanOf('--grace', grace),
      expiresAt: expires === undefined && expiry ? 'same-lifetime' : expiryOf(options),
    } as const;
    const { made, old } = await withDatabase(async ({ db }) => ({
      made: await rotateKey(db, id, rotation, { actor, reason }),
      old: await showKey(db, id),
    }));
    if (!options.json) {
      const end = old.status === 'revoked' ? null : old.expiresAt;
      const text = end === null ? 'ended now' : `works until ${timeText(end)}`;
      process.stderr.write(`The key ${id} ${text}.\n`);
    }
    return answerOf(made);
  },
});

const addRevoke = command({
  name: 'revoke',
  summary: 'end a key for good',
  description: 'Ends a key for good. A key that was revoked before keeps its first reason.',
  args: [['<id>', ID]],
  options: [
    required('--reason <text>', 'why; kept with the key and in the audit table'),
    by(),
    json(),
  ],
  help: `
Example:
  ${PROGRAM} keys revoke 7hQ2mB9xTa --reason "left the company"`,
  async run(id: string, options: { reason: string; by?: string }) {
    const actor = actorOf(options);
    const revoke = ({ db }: Work) => revokeKey(db, id, options.reason, { actor });
    return answerOf(await withDatabase(revoke));
  },
});

/** True for an active key that was neither used nor created since `sinceMs`. */
const isUnused = ({ status, lastUsedAt, createdAt }: KeyInfo, sinceMs: number): boolean =>
  status === 'active' && Date.parse(lastUsedAt ?? createdAt) < sinceMs;

/** Maximum width of a column with texts of any length. */
const WIDTH = 40;

/** The beginning of a long text; `keys show` has the whole. */
const clipped = (text: string): string =>
  text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text;

function printKeys(keys: readonly KeyInfo[]): void {
  printTable(keys, {
    id: (key) => key.id,
    name: (key) => key.name,
    owner: ({ owner }) => owner && clipped(owner),
    status: (key) => key.status,
    expires: (key) => whenText(key.expiresAt),
    used: (key) => whenText(key.lastUsedAt),
    scopes: (key) => key.scopes,
  });
}

const addList = command({
  name: 'list',
  summary: 'every key, oldest first',
  description: 'Lists every key, oldest first; never the secret part.',
  options: [
    option('--unused <span>', 'only keys that work and were not used for so long, as 90d'),
    json(),
  ],
  help: `\nExample:\n  ${PROGRAM} keys list --unused 90d`,
  async run({ unused }: { unused?: string }) {
    const since = unused === undefined ? null : Date.now() - spanOf('--unused', unused);
    const all = await withDatabase(({ db }) => listKeys(db));
    const chosen = since === null ? all : all.filter((key) => isUnused(key, since));
    return { data: chosen.map(dataOf), print: () => printKeys(chosen) };
  },
});

const addShow = command({
  name: 'show',
  summary: 'one key by its id',
  description: 'Shows all that may be shown of one key.',
  args: [['<id>', ID]],
  options: [json()],
  help: `\nExample:\n  ${PROGRAM} keys show 7hQ2mB9xTa`,
  run: async (id: string) => answerOf(await withDatabase(({ db }) => showKey(db, id))),
});

/** The printed members of an audited row of a key or of a scope. */
type AuditedMembers = {
  readonly scope?: string;
  readonly replaced_by?: string | null;
  readonly webhook?: string;
} | null;

/** Text of a changed scope, a webhook or a replacement; empty for other events. */
function changeOf({ before, after, replaces }: KeyEvent): string {
  const [was, is] = [before as AuditedMembers, after as AuditedMembers];
  if (is?.scope !== undefined) return `scope ${is.scope} given`;
  if (was?.scope !== undefined) return `scope ${was.scope} taken`;
  if (is?.webhook !== undefined) return `webhook ${is.webhook} added`;
  if (was?.webhook !== undefined) return `webhook ${was.webhook} removed`;
  if (replaces !== null) return `replaces ${replaces}`;
  const replacement = is?.replaced_by ?? null;
  return replacement === null || replacement === was?.replaced_by
    ? ''
    : `replaced by ${replacement}`;
}

function printEvents(events: readonly KeyEvent[]): void {
  printTable(events, {
    at: (event) => timeText(event.at),
    actor: actorText,
    action: (event) => event.action,
    id: (event) => event.id,
    change: changeOf,
    reason: (event) => event.reason,
  });
}

const addAudit = command({
  name: 'audit',
  summary: 'what was done to keys, newest first',
  description: 'Shows what was done to keys, by whom and why, newest first.',
  args: [['[id]', 'only of one key']],
  options: [
    option('--limit <n>', 'so many entries at most').default('100'),
    json('print data for a program, with before and after'),
  ],
  help: `\nExample:\n  ${PROGRAM} keys audit 7hQ2mB9xTa`,
  async run(id: string | undefined, { limit }: { limit: string }) {
    const asked = { id, limit: wholeOf('--limit', limit, 1, 999_999) };
    const events = await withDatabase(({ db }) => readAudit(db, asked));
    return { data: events, print: () => printEvents(events) };
  },
});

/** The commands for API keys. */
export const KEY_COMMANDS = [addCreate, addList, addShow, addRotate, addRevoke, addAudit];
