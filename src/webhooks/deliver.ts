import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import type { Database } from '../db/schema.ts';
import { scopesNow } from './access.ts';
import type { Filter, Message } from './message.ts';
import { retryAfterMs, waitMs } from './schedule.ts';
import type { Answer } from './send.ts';

/*
 * Messages that wait: which are due, and what becomes of them after an attempt.
 */

/** Time for which a sender claims a message: longer than an attempt takes. */
const CLAIM_MS = 30_000;

/** Outcome of a message. `refused`: the key may no longer read the changed markets. */
type Outcome = 'delivered' | 'failed' | 'refused' | 'gone';

/** A claimed message, with all that its attempt needs. */
export type Claimed = Message &
  Filter & {
    readonly webhookId: number;
    readonly webhook: string;
    readonly url: string;
    /** Attempts so far. */
    readonly attempts: number;
    readonly epoch: string;
    readonly secrets: readonly string[];
    /** The scopes of the key now; null if it is not valid. */
    readonly scopes: readonly string[] | null;
  };

const instant = (ms: number) => sql`${new Date(ms).toISOString()}::timestamptz`;

/** SQL: true if a sender has a message of a subscription now. */
const isClaimed = (webhookId: RawBuilder<unknown>, now: RawBuilder<unknown>) =>
  sql<boolean>`exists (select from webhook_message c
    where c.webhook_id = ${webhookId} and c.outcome is null and c.claimed_until is not null
      and c.claimed_until > ${now})`;

/** SQL: the message of a subscription that is sent next, if it is due. */
const nextDue = (webhookId: RawBuilder<unknown>, now: RawBuilder<unknown>) =>
  sql`select id, due_at from webhook_message
    where webhook_id = ${webhookId} and outcome is null and due_at <= ${now}
    order by due_at, id limit 1`;

/**
 * Locks subscriptions with a due message, so that no other sender claims their messages.
 * @returns their ids
 */
async function lockDue(
  trx: Transaction<Database>,
  now: RawBuilder<unknown>,
  { isFailing, limit }: ClaimOptions,
): Promise<readonly number[]> {
  const { rows } = await sql<{ id: number }>`
    select w.id from webhook w cross join lateral (${nextDue(sql`w.id`, now)}) as m
    where w.disabled_at is null and (w.paused_until is null or w.paused_until <= ${now})
      and (w.failing_since is not null) = ${isFailing}::boolean
      and not ${isClaimed(sql`w.id`, now)}
    order by m.due_at limit ${limit}::integer
    for no key update of w skip locked`.execute(trx);
  return rows.map(({ id }) => id);
}

interface ClaimOptions {
  /** True for the receivers whose last attempt failed, false for all others. */
  readonly isFailing: boolean;
  /** Most messages. */
  readonly limit: number;
}

/**
 * Claims messages that are due: at most one of each subscription, so that a receiver that does not
 * answer has one connection, and none of a receiver that asked to wait. A claim ends by itself if
 * its sender does.
 */
export async function claim(
  db: Kysely<Database>,
  nowMs: number,
  options: ClaimOptions,
): Promise<readonly Claimed[]> {
  const now = instant(nowMs);
  return await db.transaction().execute(async (trx) => {
    const ids = await lockDue(trx, now, options);
    if (ids.length === 0) return [];
    // Claims that were committed before the lock are visible to this statement only.
    const { rows } = await sql<Claimed>`
      with due as (
        select m.id from unnest(${ids}::integer[]) as locked (id)
          cross join lateral (${nextDue(sql`locked.id`, now)}) as m
        where not ${isClaimed(sql`locked.id`, now)}),
      claimed as (
        update webhook_message m set claimed_until = ${instant(nowMs + CLAIM_MS)}
        from due where m.id = due.id
        returning m.*)
      select c.id, c.type, c.content, c.attempts, c.webhook_id as "webhookId",
        w.public_id as webhook, w.url, w.markets, w.codes, w.operations, s.epoch,
        array(select secret from webhook_secret
          where webhook_id = w.id and (expires_at is null or expires_at > ${now})
          order by id desc) as secrets,
        ${scopesNow(sql`w.api_key_id`)} as scopes
      from claimed c join webhook w on w.id = c.webhook_id cross join service s`.execute(trx);
    return rows;
  });
}

/** Gives back a claim without an attempt. */
export async function release(db: Kysely<Database>, id: string): Promise<void> {
  await sql`update webhook_message set claimed_until = null
    where id = ${id}::uuid and outcome is null`.execute(db);
}

/** Counts an attempt, for the metrics. */
async function count(trx: Transaction<Database>, outcome: string): Promise<void> {
  await sql`insert into webhook_count (outcome, attempts) values (${outcome}, 1)
    on conflict (outcome) do update set attempts = webhook_count.attempts + 1`.execute(trx);
}

async function end(
  trx: Transaction<Database>,
  { id }: Claimed,
  outcome: Outcome,
  result: string,
  nowMs: number,
): Promise<void> {
  await sql`update webhook_message set outcome = ${outcome}, ended_at = ${instant(nowMs)},
      attempts = attempts + 1, last_result = ${result}, claimed_until = null
    where id = ${id}::uuid and outcome is null`.execute(trx);
}

/** Disables a subscription whose receiver is gone, with all its messages. */
async function disable(
  trx: Transaction<Database>,
  { webhookId }: Claimed,
  nowMs: number,
): Promise<void> {
  await sql`update webhook set disabled_at = ${instant(nowMs)},
      disabled_reason = 'the receiver answered 410 Gone'
    where id = ${webhookId}::integer`.execute(trx);
  await sql`update webhook_message set outcome = 'gone', ended_at = ${instant(nowMs)},
      claimed_until = null
    where webhook_id = ${webhookId}::integer and outcome is null`.execute(trx);
}

/**
 * Plans the next attempt, by the schedule or a later Retry-After. A test is not repeated.
 * @returns milliseconds; null if there is none
 */
function nextWait({ type, attempts }: Claimed, pauseMs: number): number | null {
  const wait = type === 'webhook.test' ? null : waitMs(attempts + 1);
  return wait === null ? null : Math.max(wait, pauseMs);
}

/** Records the outcome of an attempt. Returns it, or `retry` if the message waits again. */
export async function record(
  db: Kysely<Database>,
  message: Claimed,
  answer: Answer | 'refused',
  nowMs: number,
): Promise<Outcome | 'retry'> {
  return await db.transaction().execute(async (trx) => {
    // Senders and commands lock a subscription before its messages.
    await sql`select from webhook where id = ${message.webhookId}::integer
      for no key update`.execute(trx);
    const outcome = await recordIn(trx, message, answer, nowMs);
    await count(trx, outcome === 'retry' ? 'failed' : outcome === 'failed' ? 'given-up' : outcome);
    return outcome;
  });
}

async function recordIn(
  trx: Transaction<Database>,
  message: Claimed,
  answer: Answer | 'refused',
  nowMs: number,
): Promise<Outcome | 'retry'> {
  if (answer === 'refused') {
    await end(trx, message, 'refused', 'the key may not read this', nowMs);
    return 'refused';
  }
  const { status, text, retryAfter } = answer;
  if (status !== null && status >= 200 && status <= 299) {
    await end(trx, message, 'delivered', text, nowMs);
    await sql`update webhook set delivered_at = ${instant(nowMs)}, paused_until = null,
        failing_since = null
      where id = ${message.webhookId}::integer`.execute(trx);
    return 'delivered';
  }
  if (status === 410) {
    await end(trx, message, 'gone', text, nowMs);
    await disable(trx, message, nowMs);
    return 'gone';
  }
  const pauseMs = retryAfterMs(retryAfter, nowMs);
  await sql`update webhook set failing_since = coalesce(failing_since, ${instant(nowMs)}),
      paused_until = ${pauseMs > 0 ? instant(nowMs + pauseMs) : sql`paused_until`}
    where id = ${message.webhookId}::integer`.execute(trx);
  const wait = nextWait(message, pauseMs);
  if (wait === null) {
    await end(trx, message, 'failed', text, nowMs);
    return 'failed';
  }
  await sql`update webhook_message set attempts = attempts + 1, last_result = ${text},
      due_at = ${instant(nowMs + wait)}, claimed_until = null
    where id = ${message.id}::uuid and outcome is null`.execute(trx);
  return 'retry';
}

/** Time for which ended messages are kept, for `webhooks list`. */
const KEPT_DAYS = 30;

/** Deletes messages that ended long ago. */
export async function purge(db: Kysely<Database>, nowMs: number): Promise<void> {
  const until = instant(nowMs - KEPT_DAYS * 86_400_000);
  await sql`delete from webhook_message where outcome is not null and ended_at < ${until}`.execute(
    db,
  );
}
