import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import { numberOf } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { type Commit, commitAfter } from '../prices/changes/commit.ts';
import { scopesNow } from './access.ts';
import { changedContent, type Filter, type MessageType } from './message.ts';

/** A subscription that is not disabled. */
interface ActiveWebhook extends Filter {
  readonly id: number;
  /** The last revision for which messages were made. */
  readonly position: string;
  /** The scopes of its key; null if the key is not valid. */
  readonly scopes: readonly string[] | null;
}

/** Reads the subscriptions that are not disabled. */
async function readWebhooks(
  db: Kysely<Database>,
  locking: RawBuilder<unknown> = sql``,
): Promise<readonly ActiveWebhook[]> {
  const { rows } = await sql<ActiveWebhook>`
    select id, position, markets, codes, operations, ${scopesNow(sql`w.api_key_id`)} as scopes
    from webhook w where disabled_at is null order by id ${locking}`.execute(db);
  return rows;
}

/**
 * Locks the subscriptions that are not disabled, so that no other sender makes their messages.
 * @returns their rows, in the order in which they are locked
 */
export const lockWebhooks = (trx: Transaction<Database>): Promise<readonly ActiveWebhook[]> =>
  readWebhooks(trx, sql`for no key update of w`);

/** A message to insert. */
interface NewMessage {
  readonly webhookId: number;
  readonly content: unknown;
}

/**
 * Inserts messages that are due at once.
 * @param revision number of the revision; null for messages that are not about a commit
 */
export async function insertMessages(
  trx: Transaction<Database>,
  { type, revision }: { readonly type: MessageType; readonly revision: string | null },
  messages: readonly NewMessage[],
  nowMs: number,
): Promise<void> {
  if (messages.length === 0) return;
  const now = new Date(nowMs).toISOString();
  await sql`insert into webhook_message (webhook_id, type, revision, content, due_at)
    select webhook_id, ${type}, ${revision}::bigint, content, ${now}::timestamptz
    from unnest(${messages.map(({ webhookId }) => webhookId)}::integer[],
      ${messages.map(({ content }) => JSON.stringify(content))}::jsonb[])
      as made (webhook_id, content)`.execute(trx);
}

/** True if a commit is newer than the position of a subscription. */
async function isBehind(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ behind: boolean }>`
    select coalesce((select max(number) from revision), 0)
      > (select min(position) from webhook where disabled_at is null) as behind`.execute(db);
  return rows[0]?.behind === true;
}

/** The least position; null without subscriptions. */
const leastOf = (webhooks: readonly ActiveWebhook[]): string | null =>
  webhooks.reduce<string | null>(
    (least, { position }) =>
      least === null || BigInt(position) < BigInt(least) ? position : least,
    null,
  );

/** The contents of the messages about a commit, by subscription. */
function contentsOf(
  commit: Commit,
  webhooks: readonly ActiveWebhook[],
): ReadonlyMap<number, unknown> {
  // Many subscriptions have one filter.
  const made = new Map<string, ReturnType<typeof changedContent>>();
  const contents = new Map<number, unknown>();
  for (const { id, markets, codes, operations, scopes } of webhooks) {
    if (scopes === null) continue;
    const key = JSON.stringify([markets, codes, operations, scopes]);
    const content = made.has(key)
      ? made.get(key)
      : changedContent(commit, { markets, codes, operations }, new Set(scopes));
    made.set(key, content ?? null);
    if (content) contents.set(id, content);
  }
  return contents;
}

/**
 * Makes the messages of the next commit. Messages and positions change in one transaction, so that
 * a commit is neither lost nor announced by two messages. The commit is read before it, since no
 * outcome of an attempt can be recorded while the subscriptions are locked.
 * @returns false if there is no further commit
 */
async function followCommit(
  db: Kysely<Database>,
  nowMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const webhooks = await readWebhooks(db);
  const first = leastOf(webhooks);
  const commit = first && (await commitAfter(db, first, signal));
  if (!commit) return false;
  const number = numberOf(commit.revision);
  const contents = contentsOf(commit, webhooks);
  await db.transaction().execute(async (trx) => {
    // Positions only grow: this commit is the next one of each that is behind it.
    const behind = (await lockWebhooks(trx))
      .filter(({ position }) => BigInt(position) < BigInt(number))
      .map(({ id }) => id);
    const messages = behind
      .filter((id) => contents.has(id))
      .map((id) => ({ webhookId: id, content: contents.get(id) }));
    await insertMessages(trx, { type: 'prices.changed', revision: number }, messages, nowMs);
    await sql`update webhook set position = ${number}::bigint
      where id = any(${behind}::integer[])`.execute(trx);
  });
  return true;
}

/**
 * Makes the messages of all commits since the positions of the subscriptions, each commit in a
 * transaction of its own.
 */
export async function follow(
  db: Kysely<Database>,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isBehind(db))) return;
  let hasMore = true;
  while (hasMore && !signal.aborted) {
    hasMore = await followCommit(db, nowMs, signal);
  }
}
