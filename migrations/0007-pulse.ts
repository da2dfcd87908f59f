import { type Kysely, sql } from 'kysely';

/*
 * What a service reads to trust what it remembers: one row tells whether any API key changed, the
 * newest revision whether any data did. The counter stands in a table that every role that reads
 * may read already.
 */
const KEYS = `
alter table service add column keys_version bigint not null default 0;
comment on column service.keys_version is
  'Grows with every change of an API key or its scopes, in the same transaction.';

-- Whoever may change keys may not change this table: the function does it as its owner.
create function count_key_change() returns trigger
  language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  update service set keys_version = keys_version + 1;
  return null;
end $$;
revoke execute on function count_key_change() from public;
create trigger api_key_counted after insert or delete or truncate on api_key
  execute function count_key_change();
-- When a key was last used is all that changes nothing about it.
create trigger api_key_change_counted after update on api_key for each row
  when (to_jsonb(old) - 'last_used_at' is distinct from to_jsonb(new) - 'last_used_at')
  execute function count_key_change();
create trigger api_key_scope_counted after insert or update or delete or truncate on api_key_scope
  execute function count_key_change();
`;

/** Finds what the revisions after one touched, however many came before it. */
const SCOPES = 'create index revision_scope_revision on revision_scope (revision)';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [KEYS, SCOPES]) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`drop index revision_scope_revision;
      drop trigger api_key_counted on api_key;
      drop trigger api_key_change_counted on api_key;
      drop trigger api_key_scope_counted on api_key_scope;
      drop function count_key_change();
      alter table service drop column keys_version`)
    .execute(db);
}
