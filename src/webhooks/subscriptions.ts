import { randomBytes } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { kindOf, randomDigits } from '../auth/keys/format.ts';
import { showKey } from '../auth/keys/info.ts';
import { inAuditedTransaction, type KeyChange } from '../auth/keys/keys.ts';
import { instantOf, instantOrNull } from '../db/instant.ts';
import type { Database } from '../db/schema.ts';
import { EXIT, ExpectedError } from '../std/base-errors.ts';
import { scopesNow } from './access.ts';
import { type Filter, mayRead } from './message.ts';
import {
  type AllowedNetworks,
  checkLiteral,
  hostOf,
  isPlainText,
  RefusedReceiver,
} from './receiver.ts';

/** A webhook command that cannot be executed. The message is one line for a terminal. */
class WebhookError extends ExpectedError {
  override readonly name = 'WebhookError';
  override readonly exitCode = EXIT.usage;
}

const SECRET_BYTES = 32;
const ID_DIGITS = 10;
const URL_LENGTH_MAX = 1_024;
/** Most codes of a subscription: the links of messages name them. */
export const SUBSCRIBED_CODES_MAX = 50;

/** Most characters of the codes in a link: the service takes addresses of 8 KB. */
const LINKED_CODES_LENGTH_MAX = 5_000;

const newSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;

/** The public data of a subscription. Instants are RFC 3339 in UTC. */
export interface WebhookInfo extends Filter {
  readonly id: string;
  readonly url: string;
  /** Public id of its key. */
  readonly key: string;
  /** `stopped` if the key is not valid, `disabled` after a 410 of the receiver. */
  readonly status: 'active' | 'stopped' | 'disabled';
  readonly createdAt: string;
  readonly createdBy: string;
  readonly deliveredAt: string | null;
  /** Messages that wait, and the time of the oldest. */
  readonly waiting: number;
  readonly waitingSince: string | null;
  /** The status or the error of the last attempt of a message that waits. */
  readonly lastResult: string | null;
  /** The end of the old secret, during a rotation. */
  readonly oldSecretUntil: string | null;
}

/** A subscription with a new secret, which is shown only now. */
export type NewWebhookInfo = WebhookInfo & { readonly secret: string };

/**
 * Checks the address of a receiver, and normalises it.
 * @throws WebhookError or RefusedReceiver
 */
function receiverUrl(text: string, networks: AllowedNetworks): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new WebhookError('the receiver is an address like https://example.com/prices');
  }
  if (url.username !== '' || url.password !== '') {
    throw new WebhookError('the address of a receiver must not name a user or password');
  }
  url.hash = '';
  if (url.href.length > URL_LENGTH_MAX) {
    throw new WebhookError(`the address has more than ${URL_LENGTH_MAX} characters`);
  }
  if (isPlainText(url) && networks.length === 0) {
    throw new RefusedReceiver(
      `${hostOf(url)} may be reached over https only, unless WEBHOOK_NETWORKS has its network`,
    );
  }
  checkLiteral(url, networks);
  return url.href;
}

interface WebhookRequest extends Filter {
  readonly url: string;
  /** Public id of the key. */
  readonly key: string;
}

/**
 * Adds a subscription. It begins with the next commit.
 * @throws WebhookError, RefusedReceiver, or KeyError for an unknown key
 */
export async function addWebhook(
  db: Kysely<Database>,
  request: WebhookRequest,
  networks: AllowedNetworks,
  change: KeyChange = {},
): Promise<NewWebhookInfo> {
  const url = receiverUrl(request.url, networks);
  const key = await showKey(db, request.key);
  if (key.status !== 'active') throw new WebhookError(`the key ${key.id} is ${key.status}`);
  if (kindOf(key.id) === 'calendar') {
    throw new WebhookError('a calendar token reads no changes; name a key of another kind');
  }
  const scopes = new Set(key.scopes);
  const closed = request.markets?.find((slug) => !mayRead(scopes, slug));
  if (closed !== undefined) throw new WebhookError(`the key ${key.id} may not read ${closed}`);
  const id = `wh_${randomDigits(ID_DIGITS)}`;
  const secret = newSecret();
  const { markets, codes, operations } = request;
  const linked = new URLSearchParams(codes?.map((code): [string, string] => ['codes', code]));
  if (linked.toString().length > LINKED_CODES_LENGTH_MAX) {
    throw new WebhookError('the codes are too long for the links of messages; name fewer');
  }
  await inAuditedTransaction(db, change, async (trx) => {
    await sql`
      with added as (
        insert into webhook (public_id, url, api_key_id, markets, codes, operations, position)
        values (${id}, ${url}, (select id from api_key where public_id = ${key.id}),
          ${markets}::text[], ${codes}::text[], ${operations}::text[],
          coalesce((select max(number) from revision), 0))
        returning id)
      insert into webhook_secret (webhook_id, secret) select id, ${secret} from added`.execute(trx);
  });
  return { ...(await showWebhook(db, id)), secret };
}

type WebhookRow = Omit<WebhookInfo, 'createdAt' | 'deliveredAt' | 'oldSecretUntil'> & {
  readonly created: string;
  readonly delivered: string | null;
  readonly oldest: string | null;
  readonly secretUntil: string | null;
};

/** Lists the subscriptions, oldest first. @param id only the one with this public id */
export async function listWebhooks(
  db: Kysely<Database>,
  id: string | null = null,
): Promise<WebhookInfo[]> {
  const { rows } = await sql<WebhookRow>`
    select w.public_id as id, w.url, k.public_id as key, w.markets, w.codes, w.operations,
      case when w.disabled_at is not null then 'disabled'
        when ${scopesNow(sql`w.api_key_id`)} is null then 'stopped' else 'active' end as status,
      w.created_at as created, w.created_by as "createdBy", w.delivered_at as delivered,
      m.waiting, m.oldest, m.result as "lastResult",
      (select max(s.expires_at) from webhook_secret s
        where s.webhook_id = w.id and s.expires_at > clock_timestamp()) as "secretUntil"
    from webhook w join api_key k on k.id = w.api_key_id
      cross join lateral (
        select count(*)::integer as waiting, min(created_at) as oldest,
          (array_agg(last_result order by created_at) filter (where last_result is not null))[1]
            as result
        from webhook_message where webhook_id = w.id and outcome is null) as m
    where w.public_id = coalesce(${id}, w.public_id)
    order by w.id`.execute(db);
  return rows.map(({ created, delivered, oldest, secretUntil, ...row }) => ({
    ...row,
    createdAt: instantOf(created),
    deliveredAt: instantOrNull(delivered),
    waitingSince: instantOrNull(oldest),
    oldSecretUntil: instantOrNull(secretUntil),
  }));
}

async function showWebhook(db: Kysely<Database>, id: string): Promise<WebhookInfo> {
  const [webhook] = await listWebhooks(db, id);
  if (webhook === undefined) throw new WebhookError(`there is no webhook ${id.slice(0, 40)}`);
  return webhook;
}

/**
 * Adds a secret to a subscription. Until the end of the grace, messages have a signature of the old
 * secret too; an older one ends now.
 * @throws WebhookError for an unknown subscription
 */
export async function rotateSecret(
  db: Kysely<Database>,
  id: string,
  graceMs: number,
): Promise<NewWebhookInfo> {
  await showWebhook(db, id);
  const secret = newSecret();
  await db.transaction().execute(async (trx) => {
    const own = sql`(select id from webhook where public_id = ${id})`;
    await sql`update webhook_secret
      set expires_at = clock_timestamp()
      where webhook_id = ${own} and expires_at > clock_timestamp()`.execute(trx);
    await sql`update webhook_secret
      set expires_at = clock_timestamp() + ${`${graceMs} milliseconds`}::interval
      where webhook_id = ${own} and expires_at is null`.execute(trx);
    await sql`insert into webhook_secret (webhook_id, secret) values (${own}, ${secret})`.execute(
      trx,
    );
  });
  return { ...(await showWebhook(db, id)), secret };
}

/** Removes a subscription with its messages. @throws WebhookError for an unknown one */
export async function removeWebhook(
  db: Kysely<Database>,
  id: string,
  change: KeyChange = {},
): Promise<WebhookInfo> {
  const webhook = await showWebhook(db, id);
  await inAuditedTransaction(db, change, (trx) =>
    sql`delete from webhook where public_id = ${id}`.execute(trx),
  );
  return webhook;
}

/**
 * Adds a test message, which a sender sends once.
 * @returns the id of the message
 * @throws WebhookError for a subscription that is unknown or not active
 */
export async function addTest(db: Kysely<Database>, id: string): Promise<string> {
  const { status } = await showWebhook(db, id);
  if (status !== 'active') throw new WebhookError(`the webhook ${id} is ${status}`);
  const content = JSON.stringify({ recordedAt: new Date().toISOString() });
  const { rows } = await sql<{ id: string }>`
    insert into webhook_message (webhook_id, type, content)
    select id, 'webhook.test', ${content}::jsonb from webhook where public_id = ${id}
    returning id`.execute(db);
  return rows[0]?.id ?? '';
}

/** The state of a message. */
interface MessageState {
  /** Null while it waits. */
  readonly outcome: string | null;
  readonly result: string | null;
}

/** Reads the state of a message. */
export async function messageState(db: Kysely<Database>, id: string): Promise<MessageState> {
  const { rows } = await sql<MessageState>`
    select outcome, last_result as result from webhook_message where id = ${id}::uuid`.execute(db);
  return rows[0] ?? { outcome: 'failed', result: 'the webhook was removed' };
}
