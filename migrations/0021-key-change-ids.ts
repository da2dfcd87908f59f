import { type Kysely, sql } from 'kysely';

/*
 * A standby that lacks the last commits takes their numbers again after its promotion. A random id
 * beside each number tells the two apart. First the changes of API keys; revisions follow.
 */
const IDS = `
create function new_commit_id() returns text language sql volatile parallel safe
begin atomic
  select substr(lower(translate(encode(uuid_send(gen_random_uuid()), 'base64'), '+/', '01')), 1, 6);
end;
comment on function new_commit_id() is 'Six random letters and digits, which name one commit.';

create or replace function count_key_change() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  update service set keys_version = keys_version + 1, keys_change_id = new_commit_id();
  return null;
end $$;
revoke execute on function count_key_change() from public;
`;

/** One row: the defaults are computed at once. */
const COLUMNS = `
alter table service
  add column keys_change_id text not null default new_commit_id(),
  add column numbered_until bigint not null default 0;
comment on column service.keys_change_id is
  'Names the last change of an API key: keys_version may come back after a failover, this does not.';
comment on column service.numbered_until is
  'The newest revision before there were commit ids: up to it a text without one names a revision.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [IDS, COLUMNS]) await sql.raw(part).execute(db);
}

const BEFORE = `
create or replace function count_key_change() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  update service set keys_version = keys_version + 1;
  return null;
end $$;
revoke execute on function count_key_change() from public;
alter table service drop column keys_change_id, drop column numbered_until;
drop function new_commit_id();
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(BEFORE).execute(db);
}
