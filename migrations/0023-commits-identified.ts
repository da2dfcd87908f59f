import { type Kysely, sql } from 'kysely';

/*
 * No lock of these stops readers. Texts that clients hold of the revisions until now have no id;
 * they stay valid.
 */
const BACKFILL = `
select lock_revisions();
alter table revision disable trigger revision_frozen;
update revision set commit_id = new_commit_id() where commit_id is null;
alter table revision enable trigger revision_frozen;
alter table revision validate constraint revision_has_commit_id;
update service set numbered_until = (select coalesce(max(number), 0) from revision);
`;

const FUNCTIONS = `
create function revision_text(at bigint) returns text language sql stable parallel safe
begin atomic
  select s.epoch || coalesce((select r.commit_id from revision r where r.number = at), '')
    || '.' || at
  from service s;
end;
comment on function revision_text(bigint) is 'A revision as it is on the wire.';

-- Volatile, so that it sees a commit that the statement has waited for.
create function commit_id_of(at bigint) returns text language sql volatile parallel safe
begin atomic
  select commit_id from revision where number = at;
end;

create function require_commit(at bigint, id text) returns boolean
  language plpgsql stable parallel safe as $$
begin
  if id is null or exists (select from public.revision r where r.number = at and r.commit_id = id)
  then
    return true;
  end if;
  raise exception 'revision % is not the commit %', at, id
    using errcode = 'object_not_in_prerequisite_state',
      hint = 'The server lacks it, or took its number again.';
end $$;
comment on function require_commit(bigint, text) is
  'True where a revision is this commit, and an error where not. An id of null is any commit.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [BACKFILL, FUNCTIONS]) await sql.raw(part).execute(db);
}

/** Ids stay: texts that hold them were given out. */
export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`drop function require_commit(bigint, text);
      drop function commit_id_of(bigint);
      drop function revision_text(bigint);`)
    .execute(db);
}
