import { type Kysely, sql } from 'kysely';

const LEDGER = `
-- Readers go on; a writer waits, so that no load falls between the old rules and the new.
select lock_revisions();

alter table load_batch
  add column withdrawn bigint not null default 0 check (withdrawn >= 0),
  add column prices_removed integer not null default 0 check (prices_removed >= 0),
  add column undoes integer references load_batch (id),
  add column undone_by integer references load_batch (id),
  add constraint load_batch_undo_names_a_batch check ((format = 'undo') = (undoes is not null)),
  drop constraint load_batch_adds_up,
  add constraint load_batch_adds_up check (status = 'refused'
    or rows = inserted + unchanged + corrected + outdated + withdrawn + rejected);
comment on table load_batch is
  'The ledger of loads, withdrawals and undos: rows = inserted + unchanged + corrected + outdated + withdrawn + rejected.';
comment on column load_batch.undone_by is
  'The undo that took this batch back; null while the batch is in force.';
create index load_batch_revision on load_batch (revision);

-- A file that was undone, or of which rows were rejected, may be loaded again.
drop index load_batch_once;
create unique index load_batch_once on load_batch (sha256, format)
  where status = 'applied' and undone_by is null and rejected = 0
    and format not in ('withdraw', 'undo');

-- The coverage of an undone batch stays, also of prices that went with it: an undo can be undone.
alter table load_coverage drop constraint load_coverage_price_id_fkey;
`;

/*
 * A trigger for each row took a tenth of the time of a bulk insert. A statement can be asked the
 * same questions once: whether a revision is open, and whether all its rows carry that one.
 */
const INSERTS = `
drop trigger series_insert_has_revision on series;
create function needed_revision() returns bigint language plpgsql stable parallel safe as $$
begin
  if current_revision() is null then
    raise exception 'a change of series needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  return current_revision();
end $$;
comment on function needed_revision() is
  'The revision that this transaction has opened; an error, in words, when it has not.';
alter table series alter column revision set default needed_revision();

create or replace function series_price_exists() returns trigger language plpgsql as $$
declare
  wrong record;
begin
  select c.price_id, c.revision into wrong
    from (select distinct price_id, revision from changed) c
    where c.revision is distinct from current_revision()
      or not exists (select from price p where p.id = c.price_id)
    order by c.revision is distinct from current_revision() desc limit 1;
  if not found then
    return null;
  end if;
  if wrong.revision is distinct from current_revision() then
    raise exception 'a change of series needs a revision of its own'
      using hint = 'Begin with: select open_revision(''why''); in the same transaction.';
  end if;
  raise foreign_key_violation
    using message = format('there is no price %s', wrong.price_id), table = 'series';
end $$;
`;

const JUMPS = `
create function jumps(one numeric, other numeric, factor numeric)
  returns boolean language sql immutable parallel safe
return case
  when one is null or other is null or one = other then false
  when sign(one) <> sign(other) then true
  else greatest(abs(one), abs(other)) > factor * least(abs(one), abs(other))
end;
comment on function jumps(numeric, numeric, numeric) is
  'Whether two values differ by more than a factor. A zero, or another sign, differs from any other value by more.';

-- A value here is {low, mid, high, day}: day counts days, so that values far apart are told.
create function value_jumps(one numeric[], other numeric[], factor numeric)
  returns boolean language sql immutable parallel safe
return coalesce(abs(one[4] - other[4]) <= 400 and (
  jumps(one[2], other[2], factor)
  or jumps(one[1], other[1], factor)
  or jumps(one[3], other[3], factor)), false);
comment on function value_jumps(numeric[], numeric[], numeric) is
  'Whether low, mid or high of two values {low, mid, high, day} jump. Values more than 400 days apart are not compared.';

create function take_value(
  taken numeric[], candidate numeric[], otherwise numeric[], is_fixed boolean, factor numeric)
  returns numeric[] language sql immutable parallel safe
return case
  when is_fixed or not value_jumps(taken, candidate, factor) then candidate
  else coalesce(otherwise, taken)
end;
create aggregate last_taken(numeric[], numeric[], boolean, numeric) (
  sfunc = take_value, stype = numeric[], parallel = safe);
comment on aggregate last_taken(numeric[], numeric[], boolean, numeric) is
  'The last value of a series that stands, when each that jumps against the last is left out: then what it would have replaced stands.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [LEDGER, INSERTS, JUMPS]) await sql.raw(part).execute(db);
}

const BEFORE = `
drop aggregate last_taken(numeric[], numeric[], boolean, numeric);
drop function take_value(numeric[], numeric[], numeric[], boolean, numeric);
drop function value_jumps(numeric[], numeric[], numeric);
drop function jumps(numeric, numeric, numeric);

create or replace function series_price_exists() returns trigger language plpgsql as $$
declare
  unknown integer;
begin
  select price_id into unknown from (select distinct price_id from changed) c
    where not exists (select from price p where p.id = c.price_id) limit 1;
  if found then
    raise foreign_key_violation
      using message = format('there is no price %s', unknown), table = 'series';
  end if;
  return null;
end $$;
alter table series alter column revision set default current_revision();
drop function needed_revision();
create trigger series_insert_has_revision before insert on series for each row
  when (current_revision() is null or new.revision is distinct from current_revision())
  execute function refuse_without_revision();

drop index load_batch_once;
create unique index load_batch_once on load_batch (sha256, format) where status = 'applied';
drop index load_batch_revision;
delete from load_coverage c where price_id is not null
  and not exists (select from price p where p.id = c.price_id);
alter table load_coverage
  add constraint load_coverage_price_id_fkey foreign key (price_id) references price (id);
alter table load_batch
  drop constraint load_batch_adds_up,
  drop constraint load_batch_undo_names_a_batch,
  drop column withdrawn, drop column prices_removed, drop column undoes, drop column undone_by,
  add constraint load_batch_adds_up
    check (status = 'refused' or rows = inserted + unchanged + corrected + outdated + rejected);
comment on table load_batch is
  'The ledger of loads: rows = inserted + unchanged + corrected + outdated + rejected.';
`;

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(BEFORE).execute(db);
}
