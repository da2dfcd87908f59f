import { type Kysely, sql, type Transaction } from 'kysely';
import { numberOf } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { commitAfter } from '../prices/changes/commit.ts';
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

/**
 * Locks the subscriptions that are not disabled, so that no other sender makes their messages.
 * @returns their rows, in the order in which they are locked
 */
export async function lockWebhooks(trx: Transaction<Database>): Promise<readonly ActiveWebhook[]> {
  const { rows } = await sql<ActiveWebhook>`
    select id, position, markets, codes, operations, ${scopesNow(sql`w.api_key_id`)} as scopes
    from webhook w where disabled_at is null order by id for update of w`.execute(trx);
  return rows;
}

/** A message to insert. */
interface NewMessage {
  readonly webhookId: number;
  readonly content: unknown;
  /** Number of the revision; null for a message that is not about a commit. */
  readonly revision: string | null;
}

/** Inserts messages that are due at once. */
export async function insertMessages(
  trx: Transaction<Database>,
  type: MessageType,
  messages: readonly NewMessage[],
  nowMs: number,
): Promise<void> {
  if (messages.length === 0) return;
  const now = new Date(nowMs).toISOString();
  const rows = messages.map(
    ({ webhookId, content, revision }) =>
      sql`(${webhookId}::integer, ${type}, ${revision}::bigint, ${JSON.stringify(content)}::jsonb,
        ${now}::timestamptz)`,
  );
  await sql`insert into webhook_message (webhook_id, type, revision, content, due_at)
    values ${sql.join(rows)}`.execute(trx);
}

/** True if a commit is newer than the position of a subscription. */
async function isBehind(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql<{ behind: boolean }>`
    select coalesce((select max(number) from revision), 0)
      > (select min(position) from webhook where disabled_at is null) as behind`.execute(db);
  return rows[0]?.behind === true;
}

/**
 * Makes the messages of the next commit. Messages and positions change in one transaction, so that
 * a commit is neither lost nor announced by two messages.
 * @returns false if there is no further commit
 */
async function followCommit(trx: Transaction<Database>, nowMs: number): Promise<boolean> {
  const webhooks = await lockWebhooks(trx);
  const positions = webhooks.map(({ position }) => BigInt(position));
  const [first] = positions.sort((a, b) => (a < b ? -1 : 1));
  if (first === undefined) return false;
  const commit = await commitAfter(trx, String(first));
  if (commit === null) return false;
  const number = numberOf(commit.revision);
  const behind = webhooks.filter(({ position }) => BigInt(position) < BigInt(number));
  const messages = behind.flatMap((webhook) => {
    const content = webhook.scopes && changedContent(commit, webhook, new Set(webhook.scopes));
    return content ? [{ webhookId: webhook.id, content, revision: number }] : [];
  });
  await insertMessages(trx, 'prices.changed', messages, nowMs);
  await sql`update webhook set position = ${number}::bigint
    where id = any(${behind.map(({ id }) => id)}::integer[])`.execute(trx);
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
    hasMore = await db.transaction().execute((trx) => followCommit(trx, nowMs));
  }
}
