import { type Kysely, sql } from 'kysely';

/** The rights of the owner, for functions that write rows that no account may write directly. */
const AS_OWNER = 'security definer set search_path = pg_catalog, public, pg_temp';

/** Other names by which search finds prices: versioned like all reference data. */
const SCHEMA = `
create table search_alias (
  id integer primary key generated always as identity,
  words text not null check (words ~ '[^[:space:]]' and words !~ '[[:cntrl:]]'),
  alias text not null check (alias ~ '[^[:space:]]' and alias !~ '[[:cntrl:]]'),
  revision bigint not null default current_revision() references revision (number),
  unique (words, alias)
);
comment on table search_alias is
  'Other names for search: a price with all words in one of its attributes is found by the alias too.';

create table search_alias_history (
  like search_alias including constraints,
  revision_to bigint not null references revision (number),
  check (revision < revision_to),
  primary key (id, revision)
);
comment on table search_alias_history is
  'Superseded rows of search_alias: in force from revision up to revision_to, exclusive.';

create trigger search_alias_revision_is_open before insert or update or delete on search_alias
  execute function check_revision();
create trigger search_alias_history_by_triggers before insert on search_alias_history for each statement
  when (pg_trigger_depth() = 0) execute function refuse_change();
create trigger search_alias_insert_has_revision before insert on search_alias for each row
  when (current_revision() is null or new.revision is distinct from current_revision())
  execute function refuse_without_revision();
create trigger search_alias_stamp before update on search_alias for each row
  when (new.revision is distinct from current_revision()) execute function stamp_revision();
create trigger search_alias_no_truncate before truncate on search_alias execute function refuse_change();
create trigger search_alias_history_frozen before update or delete on search_alias_history
  for each row execute function refuse_change();
create trigger search_alias_history_no_truncate before truncate on search_alias_history
  execute function refuse_change();

create function search_alias_keep() returns trigger language plpgsql ${AS_OWNER} as $$
begin
  if current_revision() is null and exists (select from superseded) then
    raise exception 'a change of search_alias needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  insert into search_alias_history (id, words, alias, revision, revision_to)
    select id, words, alias, revision, current_revision() from superseded
      where revision < current_revision();
  return null;
end $$;
create function search_alias_at(at bigint)
  returns table (id integer, words text, alias text, revision bigint)
  language sql stable parallel safe
begin atomic
  select id, words, alias, revision from search_alias where revision <= at
  union all
  select id, words, alias, revision from search_alias_history
    where revision <= at and revision_to > at;
end;
create function search_alias_touch() returns trigger language plpgsql ${AS_OWNER} as $$
begin
  insert into revision_scope (scope, revision)
    select 'reference', current_revision() where exists (select from changed)
  on conflict do nothing;
  return null;
end $$;
comment on function search_alias_keep() is 'Copies superseded rows of search_alias to its history.';
comment on function search_alias_at(bigint) is 'The rows of search_alias at a revision.';
revoke execute on function search_alias_keep() from public;
create trigger search_alias_keep_updated after update on search_alias
  referencing old table as superseded for each statement execute function search_alias_keep();
create trigger search_alias_keep_deleted after delete on search_alias
  referencing old table as superseded for each statement execute function search_alias_keep();
comment on function search_alias_touch() is 'Records that a revision changed search_alias.';
revoke execute on function search_alias_touch() from public;
create trigger search_alias_touch_inserted after insert on search_alias
  referencing new table as changed for each statement execute function search_alias_touch();
create trigger search_alias_touch_updated after update on search_alias
  referencing new table as changed for each statement execute function search_alias_touch();
create trigger search_alias_touch_deleted after delete on search_alias
  referencing old table as changed for each statement execute function search_alias_touch();
`;

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql.raw(SCHEMA).execute(db);
};
