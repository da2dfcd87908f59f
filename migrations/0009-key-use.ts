import { type Kysely, sql } from 'kysely';

/**
 * The last use of keys, apart from their rows: an account that records uses could hold the lock of
 * a row, and a revocation would wait for it.
 */
const KEY_USE = `
create table key_use (
  public_id text primary key,
  last_used_at timestamptz not null
);
comment on table key_use is
  'Time of the last use of each API key, to the minute. No foreign key, which would lock the row of the key.';
comment on column api_key.last_used_at is 'No longer written: the last use is in key_use.';

insert into key_use (public_id, last_used_at)
  select public_id, last_used_at from api_key where last_used_at is not null;

-- Only ids of keys are recorded, so that the table grows with the keys. A time never moves back:
-- instances report in any order. Rows are locked in one order, so that instances do not deadlock.
create function note_used(ids text[], instants timestamptz[]) returns void language sql
  security definer set search_path = pg_catalog, public, pg_temp as $$
  with added as (
    insert into key_use (public_id, last_used_at)
      select k.public_id, u.at
        from unnest(ids, instants) as u (id, at) join api_key k on k.public_id = u.id
        order by k.public_id
      on conflict do nothing
      returning public_id, last_used_at)
  insert into key_audit (actor, action, public_id, after)
    select key_actor(), 'first-used', public_id, jsonb_build_object('last_used_at', last_used_at)
      from added;
  with later as (
    select k.public_id, u.at
      from unnest(ids, instants) as u (id, at) join key_use k on k.public_id = u.id
      where k.last_used_at < u.at
      order by k.public_id for update of k)
  update key_use k set last_used_at = later.at
    from later where k.public_id = later.public_id and k.last_used_at < later.at;
$$;
comment on function note_used is
  'Records the last use of keys, and their first use in the audit. The second array has the instants by id.';
revoke execute on function note_used from public;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(KEY_USE).execute(db);
}
