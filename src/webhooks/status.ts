import { type Kysely, sql } from 'kysely';
import type { Database } from '../db/schema.ts';
import { sharedRefresh } from '../db/shared-work.ts';

/** The messages of all subscriptions, for metrics. */
interface WebhookStatus {
  readonly pending: number;
  /** Age of the oldest message that waits, or of a commit without messages yet. */
  readonly oldestSeconds: number;
  /** Attempts by outcome. */
  readonly attempts: Readonly<Record<string, number>>;
}

/** The last known state of the messages, for metrics. */
interface WebhookWatch {
  /** Reads the state again. Never throws. */
  refresh(): Promise<void>;
  status(): WebhookStatus;
}

/** Outcomes of attempts. */
const OUTCOMES = ['delivered', 'failed', 'given-up', 'refused', 'gone'];

/** Watches the messages of a database, with the account of the service. */
export function watchWebhooks(db: Kysely<Database>): WebhookWatch {
  let known = statusOf();
  return {
    refresh: sharedRefresh(async () => {
      known = await readStatus(db);
    }),
    status: () => known,
  };
}

interface StatusRow {
  readonly pending: number;
  readonly oldest: number | null;
  readonly attempts: Readonly<Record<string, number>> | null;
}

const statusOf = (row?: StatusRow): WebhookStatus => ({
  pending: row?.pending ?? 0,
  oldestSeconds: Math.max(0, row?.oldest ?? 0),
  attempts: { ...Object.fromEntries(OUTCOMES.map((each) => [each, 0])), ...row?.attempts },
});

async function readStatus(db: Kysely<Database>): Promise<WebhookStatus> {
  const { rows } = await sql<StatusRow>`
    with active as (select id, position from webhook where disabled_at is null),
    waiting as (
      select count(*)::integer as messages, min(m.created_at) as since
      from webhook_message m join active on active.id = m.webhook_id where m.outcome is null)
    select waiting.messages as pending,
      extract(epoch from clock_timestamp() - least(waiting.since,
        (select committed_at from revision where number > (select min(position) from active)
          order by number limit 1)))::float8 as oldest,
      (select json_object_agg(outcome, attempts) from webhook_count) as attempts
    from waiting`.execute(db);
  return statusOf(rows[0]);
}
