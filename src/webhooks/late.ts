import { type Kysely, sql } from 'kysely';
import { MARKETS } from '../catalog/markets.ts';
import { readDataRevision } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { duePricesReader } from '../prices/calendar/due-prices.ts';
import { type LatePrice, latePrices, watchedPrices } from '../prices/calendar/late.ts';
import { referenceReader } from '../prices/market/references.ts';
import { samplesReader } from '../prices/market/samples.ts';
import { insertMessages, lockWebhooks } from './follow.ts';
import { LATE, lateContent } from './message.ts';

const SLUGS = MARKETS.map(({ slug }) => slug);

/** True if a subscription wants messages about late prices. */
async function isWanted(db: Kysely<Database>): Promise<boolean> {
  const { rows } = await sql`select from webhook
    where disabled_at is null and ${LATE} = any(coalesce(operations, array[${LATE}]))
    limit 1`.execute(db);
  return rows.length > 0;
}

/** Replaces the recorded late prices. Returns those that were not recorded. */
async function recordLate(
  db: Kysely<Database>,
  late: readonly LatePrice[],
): Promise<readonly LatePrice[]> {
  const codes = late.map(({ code }) => code);
  const days = late.map((each) => each.late.day);
  const { rows } = await sql<{ code: string }>`
    with present as (
      select * from unnest(${codes}::text[], ${days}::date[]) as p (code, day)),
    gone as (
      delete from webhook_late l
      where not exists (select from present p where p.code = l.code and p.day = l.day)
      returning l.code),
    known as (select l.code from webhook_late l join present p using (code, day))
    select code from present where code not in (select code from known)`.execute(db);
  const added = new Set(rows.map(({ code }) => code));
  const found = late.filter(({ code }) => added.has(code));
  await sql`insert into webhook_late (code, day)
    select * from unnest(${found.map(({ code }) => code)}::text[],
      ${found.map((each) => each.late.day)}::date[])`.execute(db);
  return found;
}

/** Makes messages about prices that have become late. */
export type LateRounds = (nowMs: number) => Promise<void>;

/**
 * Returns a function that judges all prices by the one rule of lateness, and makes a message for
 * each subscription about the prices that have become late since its last call.
 */
export function lateRounds(db: Kysely<Database>, graceMinutes: number): LateRounds {
  const readers = {
    ...{ db, references: referenceReader(1), samples: samplesReader(db) },
    duePrices: duePricesReader(db),
  };
  return async (nowMs) => {
    if (!(await isWanted(db))) return;
    const data = await readDataRevision(db, SLUGS);
    const watched = await watchedPrices(readers, SLUGS, data);
    const late = latePrices(watched, { nowMs, graceMinutes });
    await db.transaction().execute(async (trx) => {
      const webhooks = await lockWebhooks(trx);
      const added = await recordLate(trx, late);
      const recordedAt = new Date(nowMs).toISOString();
      const messages = webhooks.flatMap((webhook) => {
        const { scopes } = webhook;
        const content = scopes && lateContent(added, webhook, new Set(scopes), recordedAt);
        return content ? [{ webhookId: webhook.id, content }] : [];
      });
      await insertMessages(trx, { type: 'price.late', revision: null }, messages, nowMs);
    });
  };
}
