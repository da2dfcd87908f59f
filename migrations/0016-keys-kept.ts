import { type Kysely, sql } from 'kysely';

/* The audit notes rows, and a truncate has none: keys and their scopes went away unseen by it. */
const TRUNCATE = `
create function refuse_key_truncate() returns trigger language plpgsql
  set search_path = pg_catalog, public, pg_temp as $$
begin
  raise exception 'truncate of % is refused: the audit would not show it', tg_table_name
    using hint = 'Revoke keys, or delete their rows.';
end $$;
create trigger api_key_no_truncate before truncate on api_key
  execute function refuse_key_truncate();
create trigger api_key_scope_no_truncate before truncate on api_key_scope
  execute function refuse_key_truncate();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(TRUNCATE).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop trigger api_key_scope_no_truncate on api_key_scope;
    drop trigger api_key_no_truncate on api_key;
    drop function refuse_key_truncate();
  `)
    .execute(db);
}
