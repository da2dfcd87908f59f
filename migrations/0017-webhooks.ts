import { type Kysely, sql } from 'kysely';

/** Webhooks: subscriptions, their secrets, and the messages that wait or were sent. */
const WEBHOOKS = `
create table webhook (
  id integer primary key generated always as identity,
  public_id text not null unique check (public_id ~ '^wh_[0-9A-Za-z]{10}$'),
  url text not null
    constraint webhook_url_formed check (url ~ '^https?://[!-~]+$' and length(url) <= 1024),
  api_key_id integer not null references api_key (id) on delete cascade,
  markets text[],
  codes text[],
  operations text[],
  created_at timestamptz not null default clock_timestamp(),
  created_by text not null default key_actor(),
  position bigint not null check (position >= 0),
  paused_until timestamptz,
  delivered_at timestamptz,
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text,
  check ((disabled_at is null) = (disabled_reason is null))
);
comment on table webhook is
  'Subscriptions of receivers to doorbells. A null filter selects everything that the API key may read.';
comment on column webhook.api_key_id is
  'The API key whose scopes bound the messages. A key that was rotated stands for its replacement.';
comment on column webhook.position is 'The last revision for which messages were made.';
comment on column webhook.paused_until is 'The end of the last Retry-After of the receiver.';
comment on column webhook.failing_since is
  'The first failed attempt since the last delivery; null if the last attempt was delivered.';

create table webhook_secret (
  id integer primary key generated always as identity,
  webhook_id integer not null references webhook (id) on delete cascade,
  secret text not null check (secret ~ '^whsec_[0-9A-Za-z+/]{32,86}={0,2}$'),
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz
);
comment on table webhook_secret is
  'Secrets that sign messages: one for each subscription, two during a rotation. Only the account that sends reads them.';
create index webhook_secret_of on webhook_secret (webhook_id);

create table webhook_message (
  id uuid primary key default gen_random_uuid(),
  webhook_id integer not null references webhook (id) on delete cascade,
  type text not null check (type in ('prices.changed', 'price.late', 'webhook.test')),
  revision bigint,
  content jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  due_at timestamptz not null default clock_timestamp(),
  claimed_until timestamptz,
  attempts smallint not null default 0,
  last_result text,
  outcome text check (outcome in ('delivered', 'failed', 'refused', 'gone')),
  ended_at timestamptz,
  constraint webhook_message_of_commit unique (webhook_id, revision),
  check ((outcome is null) = (ended_at is null)),
  check ((type = 'prices.changed') = (revision is not null))
);
comment on table webhook_message is
  'Messages to receivers. One without an outcome waits until due_at. A sender claims it for a while.';
comment on column webhook_message.last_result is
  'The status or the error of the last attempt; never the answer of the receiver.';
create index webhook_message_waiting on webhook_message (webhook_id, due_at, id) where outcome is null;
create index webhook_message_claimed on webhook_message (webhook_id)
  where outcome is null and claimed_until is not null;
create index webhook_message_ended on webhook_message (ended_at) where outcome is not null;

create table webhook_count (
  outcome text primary key,
  attempts bigint not null
);
comment on table webhook_count is 'Attempts to send messages, by outcome, since the first one.';

create table webhook_late (
  code text primary key,
  day date not null
);
comment on table webhook_late is 'Prices that are late, with the missing day, for which messages were made.';
`;

/** The audit of keys records who let a key send, and to which server. */
const AUDIT = `
create function audit_webhook() returns trigger language plpgsql security definer
  set search_path = pg_catalog, public, pg_temp as $$
declare
  changed webhook := coalesce(new, old);
  described jsonb := jsonb_build_object('webhook', changed.public_id,
    'receiver', substring(changed.url, '^https?://[^/?]+'));
begin
  insert into key_audit (actor, action, public_id, before, after, reason)
    select key_actor(), 'changed', k.public_id,
      case when tg_op = 'DELETE' then described end,
      case when tg_op = 'INSERT' then described end, key_reason()
    from api_key k where k.id = changed.api_key_id;
  return null;
end $$;
comment on function audit_webhook() is 'Records a new or removed webhook in the audit of its API key.';
revoke execute on function audit_webhook() from public;
create trigger webhook_audit after insert or delete on webhook
  for each row execute function audit_webhook();
create trigger webhook_no_truncate before truncate on webhook execute function refuse_key_truncate();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [WEBHOOKS, AUDIT]) await sql.raw(part).execute(db);
}
