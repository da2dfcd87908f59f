-- The accounts of the service, and their rights. `prices db roles` runs this file. To run it by
-- hand, print it with `prices db roles --print` and pipe it to psql. It is idempotent, and resets
-- every right to this file. It needs a superuser, or an account that can create roles and owns the
-- tables.
--
--   prices_owner     owns the tables; cannot log in
--   prices_migrator  logs in and acts as the owner: migrations, seeds
--   prices_loader    adds and corrects data through revisions; cannot change history
--   prices_usage     records the last use of keys, counts requests, and reads the newest revision
--   prices_service   reads: the account of the service
--   prices_keys      creates and revokes API keys; cannot read prices
--   prices_reader    reads the views of the schema published, and nothing else
--   prices_webhooks  sends doorbells: reads prices, the scopes of keys, and the secrets that sign

-- ==== Accounts ====

do $$
declare
  name text;
begin
  if not exists (select from pg_roles where rolname = 'prices_owner') then
    create role prices_owner nologin;
  end if;
  foreach name in array array['prices_migrator', 'prices_loader', 'prices_usage', 'prices_service', 'prices_keys',
      'prices_reader', 'prices_webhooks'] loop
    if not exists (select from pg_roles where rolname = name) then
      -- Without a password it cannot log in, unless pg_hba.conf allows it.
      execute format('create role %I login', name);
      -- Reserves connections for other accounts on a server with 100 connections.
      if name = 'prices_service' then
        alter role prices_service connection limit 80;
      elsif name = 'prices_reader' then
        alter role prices_reader connection limit 10;
      elsif name = 'prices_webhooks' then
        alter role prices_webhooks connection limit 10;
      end if;
    end if;
  end loop;
  -- Without superuser, an account can transfer tables only to a role of which it is a member.
  if not (select rolsuper from pg_roles where rolname = current_user) and current_user <> 'prices_owner' then
    execute format('grant prices_owner to %I', current_user);
  end if;
end $$;

-- Objects that the migrator creates belong to the owner.
grant prices_owner to prices_migrator;
alter role prices_migrator set role = 'prices_owner';
alter role prices_migrator set search_path = public, pg_temp;
alter role prices_migrator set idle_session_timeout = '1h';

-- A second protection, in addition to missing rights: sessions of the service are read-only and
-- have timeouts.
alter role prices_service set default_transaction_read_only = on;
alter role prices_service set search_path = public, pg_temp;
alter role prices_service set statement_timeout = '8s';
alter role prices_service set lock_timeout = '1s';
alter role prices_service set idle_in_transaction_session_timeout = '10s';
-- The service and the commands disable this limit for their own sessions.
alter role prices_service set idle_session_timeout = '1h';
alter role prices_service set tcp_keepalives_idle = '10s';
alter role prices_service set tcp_keepalives_interval = '5s';
alter role prices_service set tcp_keepalives_count = 3;

-- A load has no statement timeout, and waits for the load before it. An idle transaction would
-- block all other loads.
alter role prices_loader set search_path = public, pg_temp;
alter role prices_loader set idle_in_transaction_session_timeout = '5min';
alter role prices_loader set idle_session_timeout = '1h';
alter role prices_loader set synchronous_commit = on;

alter role prices_keys set search_path = public, pg_temp;
alter role prices_keys set statement_timeout = '10s';
alter role prices_keys set lock_timeout = '2s';
alter role prices_keys set idle_in_transaction_session_timeout = '10s';
alter role prices_keys set idle_session_timeout = '15min';

alter role prices_usage set search_path = public, pg_temp;
alter role prices_usage set statement_timeout = '5s';
alter role prices_usage set lock_timeout = '1s';
alter role prices_usage set idle_in_transaction_session_timeout = '10s';
alter role prices_usage set idle_session_timeout = '15min';

-- Reports run longer than requests. The connection limit is that of a new account only, and may be
-- changed.
alter role prices_reader set default_transaction_read_only = on;
alter role prices_reader set search_path = published, pg_temp;
alter role prices_reader set statement_timeout = '60s';
alter role prices_reader set lock_timeout = '1s';
alter role prices_reader set idle_in_transaction_session_timeout = '1min';
alter role prices_reader set idle_session_timeout = '1h';

alter role prices_webhooks set search_path = public, pg_temp;
alter role prices_webhooks set statement_timeout = '30s';
alter role prices_webhooks set lock_timeout = '2s';
alter role prices_webhooks set idle_in_transaction_session_timeout = '10s';
alter role prices_webhooks set idle_session_timeout = '15min';

-- Ends a statement whose connection is closed, as the service does for an aborted request. Not
-- supported on every system.
do $$
begin
  alter role prices_service set client_connection_check_interval = '200ms';
  alter role prices_loader set client_connection_check_interval = '2s';
  alter role prices_reader set client_connection_check_interval = '2s';
exception when invalid_parameter_value then
  raise notice 'client_connection_check_interval is not supported by this system';
end $$;

-- ==== Rights ====

-- Only accounts that need them get connections and temporary tables.
do $$
begin
  if not pg_has_role((select datdba from pg_database where datname = current_database()), 'usage') then
    return;
  end if;
  execute format('revoke connect, temporary on database %I from public', current_database());
  execute format('revoke all on database %I from prices_loader, prices_usage, prices_service, prices_keys',
    current_database());
  execute format('grant connect on database %I to prices_owner, prices_migrator, prices_loader, '
    'prices_usage, prices_service, prices_keys', current_database());
  -- Migrations create schemas.
  execute format('grant create on database %I to prices_owner', current_database());
  execute format('grant temporary on database %I to prices_owner, prices_loader', current_database());
  revoke create on schema public from public;
  grant usage on schema public to prices_owner, prices_migrator, prices_loader, prices_usage,
    prices_service, prices_keys;
  grant create on schema public to prices_owner;
end $$;

-- By default every account can create large objects, which use space in the database.
do $$
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) from public;
  end if;
end $$;

-- By default every account can take any advisory lock, limited only by the memory of the server.
do $$
declare
  each regprocedure;
begin
  if not (select rolsuper from pg_roles where rolname = current_user) then
    return;
  end if;
  for each in select oid::regprocedure from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and proname ~ '^pg_(try_)?advisory_(xact_)?lock' loop
    execute format('revoke execute on function %s from public', each);
    execute format('grant execute on function %s to prices_owner, prices_migrator', each);
  end loop;
end $$;

-- All objects of migrations belong to the owner, whichever account created them.
do $$
declare
  maker oid := (select relowner from pg_class where oid = to_regclass('public.kysely_migration'));
  own regnamespace[] := array['public'::regnamespace, to_regnamespace('published')];
  each record;
begin
  if exists (select from pg_namespace where nspname = 'published'
      and nspowner in (maker, to_regrole(quote_ident(session_user)))) then
    alter schema published owner to prices_owner;
  end if;
  for each in
    select format('table %s', oid::regclass) as what from pg_class c
      where relnamespace = any(own) and relkind in ('r', 'p', 'v', 'm')
        and relowner in (maker, to_regrole(quote_ident(session_user))) and relowner <> 'prices_owner'::regrole
        and not exists (select from pg_depend where objid = c.oid and deptype = 'e')
    union all
    select format('routine %s', oid::regprocedure) from pg_proc p
      where pronamespace = any(own)
        and proowner in (maker, to_regrole(quote_ident(session_user))) and proowner <> 'prices_owner'::regrole
        and not exists (select from pg_depend where objid = p.oid and deptype = 'e')
  loop
    execute format('alter %s owner to prices_owner', each.what);
  end loop;
end $$;

-- The service can read tables of later migrations at once.
alter default privileges for role prices_owner in schema public grant select on tables to prices_service;

-- The complete list of rights by account and table.
do $$
declare
  granted record;
  own regclass;
begin
  -- Only tables of the owner: others in this schema belong to the installation.
  for own in
    select oid::regclass from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')
        and relowner = 'prices_owner'::regrole
  loop
    execute format('revoke all on %s from prices_migrator, prices_loader, prices_usage, '
      'prices_service, prices_keys', own);
    execute format('grant select on %s to prices_service', own);
  end loop;
  -- The addresses of receivers and the secrets that sign are none of the service's business.
  if to_regclass('public.webhook') is not null then
    revoke all on webhook, webhook_secret from prices_service;
  end if;
  for granted in
    select * from (values
      ('prices_loader', 'select, insert, update', 'currency'),
      ('prices_loader', 'select', 'unit_of_measure'),
      ('prices_loader', 'select, insert, update', 'dimension_value'),
      ('prices_loader', 'select, insert, update', 'product'),
      ('prices_loader', 'select', 'search_alias'),
      ('prices_loader', 'select, insert, update', 'price'),
      ('prices_loader', 'select, insert, update, delete', 'series'),
      ('prices_loader', 'select', 'fx_source'),
      ('prices_loader', 'select, insert, update, delete', 'fx_rate'),
      ('prices_loader', 'select, insert, update, delete', 'holiday_list'),
      ('prices_loader', 'select, insert, update, delete', 'calendar'),
      ('prices_loader', 'select, insert, update, delete', 'price_calendar'),
      ('prices_loader', 'select, insert, update, delete', 'vat_rate'),
      ('prices_loader', 'select, insert', 'load_batch'),
      ('prices_loader', 'select, insert', 'load_coverage'),
      ('prices_loader', 'update', 'write_lock'),
      ('prices_loader', 'select', 'service'),
      ('prices_loader', 'select', 'market'),
      ('prices_loader', 'select', 'access_scope'),
      ('prices_loader', 'select', 'kysely_migration'),
      ('prices_loader', 'select', 'revision'),
      ('prices_loader', 'select', 'revision_scope'),
      ('prices_loader', 'select', 'change_segment'),
      ('prices_loader', 'select', 'currency_history'),
      ('prices_loader', 'select', 'unit_of_measure_history'),
      ('prices_loader', 'select', 'dimension_value_history'),
      ('prices_loader', 'select', 'product_history'),
      ('prices_loader', 'select', 'search_alias_history'),
      ('prices_loader', 'select', 'price_history'),
      ('prices_loader', 'select', 'series_history'),
      ('prices_loader', 'select', 'fx_rate_history'),
      ('prices_loader', 'select', 'holiday_list_history'),
      ('prices_loader', 'select', 'calendar_history'),
      ('prices_loader', 'select', 'price_calendar_history'),
      ('prices_loader', 'select', 'vat_rate_history'),

      ('prices_usage', 'select', 'revision'),
      ('prices_usage', 'select (epoch)', 'service'),

      ('prices_keys', 'select', 'api_key'),
      ('prices_keys', 'insert (public_id, name, owner, digest, digest_alg, expires_at)', 'api_key'),
      ('prices_keys', 'update (name, owner, expires_at, revoked_at, revoked_reason)', 'api_key'),
      ('prices_keys', 'select, insert', 'api_key_scope'),
      ('prices_keys', 'select', 'key_use'),
      ('prices_keys', 'select', 'key_audit'),
      ('prices_keys', 'select', 'access_scope'),
      ('prices_keys', 'select', 'market'),
      ('prices_keys', 'select', 'kysely_migration'),
      ('prices_keys', 'select (number)', 'revision'),
      ('prices_keys', 'select, insert (public_id, url, api_key_id, markets, codes, operations, position), delete', 'webhook'),
      ('prices_keys', 'select (id, webhook_id, created_at, expires_at), insert (webhook_id, secret), update (expires_at)', 'webhook_secret'),
      ('prices_keys', 'select, insert (webhook_id, type, content)', 'webhook_message'),

      ('prices_service', 'select (id, position, disabled_at)', 'webhook'),
      ('prices_service', 'select (id)', 'webhook_secret')
    ) as rights (account, privileges, name)
    where to_regclass('public.' || name) is not null
  loop
    execute format('grant %s on public.%I to %I', granted.privileges, granted.name, granted.account);
  end loop;

  if to_regclass('public.key_audit') is not null then
    grant insert (rate_per_minute, rate_burst, concurrent),
      update (rate_per_minute, rate_burst, concurrent, replaced_by) on api_key to prices_keys;
  end if;
  if to_regclass('public.load_batch_id_seq') is not null then
    grant usage on sequence load_batch_id_seq to prices_loader;
  end if;
  if to_regprocedure('public.open_revision(text)') is not null then
    grant execute on function open_revision(text) to prices_loader;
  end if;
  -- Recorded bursts of refusals; a function that nothing calls any more.
  if to_regprocedure('public.note_denied(text[], integer[])') is not null then
    revoke execute on function note_denied(text[], integer[]) from prices_usage;
  end if;
  if to_regprocedure('public.note_used(text[], timestamptz[])') is not null then
    grant execute on function note_used(text[], timestamptz[]) to prices_usage;
  end if;
  -- The right to ANALYZE tables after a load. Before PostgreSQL 17 autovacuum does this.
  if current_setting('server_version_num')::integer >= 170000 and to_regclass('public.series') is not null then
    execute 'grant maintain on series, fx_rate to prices_loader';
  end if;
end $$;

-- The reader has rights on the views of the schema published only. The views read the tables with
-- the rights of their owner. `db migrate` of a database whose accounts an earlier version made finds
-- no such account: `db roles` makes it.
do $$
declare
  own regclass;
begin
  if to_regrole('prices_reader') is null then
    return;
  end if;
  -- Only tables of the owner, as for the other accounts.
  for own in
    select oid::regclass from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')
        and relowner = 'prices_owner'::regrole
  loop
    execute format('revoke all on %s from prices_reader', own);
  end loop;
  revoke all on all functions in schema public from prices_reader;
  if pg_has_role((select datdba from pg_database where datname = current_database()), 'usage') then
    execute format('revoke all on database %I from prices_reader', current_database());
    execute format('grant connect on database %I to prices_reader', current_database());
  end if;
end $$;

-- `db migrate` of a database whose accounts an earlier version made finds no such account: `db roles`
-- makes it.
do $$
declare
  granted record;
  own regclass;
begin
  if to_regrole('prices_webhooks') is null then
    return;
  end if;
  -- Only tables of the owner, as for the other accounts.
  for own in
    select oid::regclass from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')
        and relowner = 'prices_owner'::regrole
  loop
    execute format('revoke all on %s from prices_webhooks', own);
  end loop;
  if pg_has_role((select datdba from pg_database where datname = current_database()), 'usage') then
    execute format('revoke all on database %I from prices_webhooks', current_database());
    execute format('grant connect on database %I to prices_webhooks', current_database());
    grant usage on schema public to prices_webhooks;
  end if;
  for granted in
    select * from (values
      ('prices_webhooks', 'select (epoch)', 'service'),
      ('prices_webhooks', 'select', 'kysely_migration'),
      ('prices_webhooks', 'select', 'revision'),
      ('prices_webhooks', 'select', 'revision_scope'),
      ('prices_webhooks', 'select', 'change_segment'),
      ('prices_webhooks', 'select', 'market'),
      ('prices_webhooks', 'select', 'access_scope'),
      ('prices_webhooks', 'select', 'currency'),
      ('prices_webhooks', 'select', 'currency_history'),
      ('prices_webhooks', 'select', 'unit_of_measure'),
      ('prices_webhooks', 'select', 'unit_of_measure_history'),
      ('prices_webhooks', 'select', 'dimension_value'),
      ('prices_webhooks', 'select', 'dimension_value_history'),
      ('prices_webhooks', 'select', 'product'),
      ('prices_webhooks', 'select', 'product_history'),
      ('prices_webhooks', 'select', 'price'),
      ('prices_webhooks', 'select', 'price_history'),
      ('prices_webhooks', 'select', 'series'),
      ('prices_webhooks', 'select', 'series_history'),
      ('prices_webhooks', 'select', 'holiday_list'),
      ('prices_webhooks', 'select', 'holiday_list_history'),
      ('prices_webhooks', 'select', 'calendar'),
      ('prices_webhooks', 'select', 'calendar_history'),
      ('prices_webhooks', 'select', 'price_calendar'),
      ('prices_webhooks', 'select', 'price_calendar_history'),
      ('prices_webhooks', 'select', 'vat_rate'),
      ('prices_webhooks', 'select', 'vat_rate_history'),
      ('prices_webhooks', 'select', 'load_batch'),
      ('prices_webhooks', 'select (id, public_id, expires_at, revoked_at, replaced_by)', 'api_key'),
      ('prices_webhooks', 'select', 'api_key_scope'),
      ('prices_webhooks', 'select, update (position, paused_until, delivered_at, failing_since, disabled_at, disabled_reason)', 'webhook'),
      ('prices_webhooks', 'select', 'webhook_secret'),
      ('prices_webhooks', 'select, insert, update, delete', 'webhook_message'),
      ('prices_webhooks', 'select, insert, update', 'webhook_count'),
      ('prices_webhooks', 'select, insert, delete', 'webhook_late')
    ) as rights (account, privileges, name)
    where to_regclass('public.' || name) is not null
  loop
    execute format('grant %s on public.%I to %I', granted.privileges, granted.name, granted.account);
  end loop;
end $$;

do $$
begin
  if to_regnamespace('published') is null then
    return;
  end if;
  revoke all on schema published from public, prices_migrator, prices_loader, prices_usage, prices_service, prices_keys;
  revoke all on all tables in schema published
    from public, prices_migrator, prices_loader, prices_usage, prices_service, prices_keys;
  revoke all on all functions in schema published
    from public, prices_migrator, prices_loader, prices_usage, prices_service, prices_keys;
  if to_regrole('prices_reader') is not null then
    revoke all on schema published from prices_reader;
    revoke all on all tables in schema published from prices_reader;
    grant usage on schema published to prices_reader;
    grant select on all tables in schema published to prices_reader;
    grant execute on all functions in schema published to prices_reader;
  end if;
end $$;
