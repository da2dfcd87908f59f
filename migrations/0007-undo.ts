import { type Kysely, sql } from 'kysely';

/** The columns of `price` that refer to `dimension_value`. */
const DIMENSIONS = [
  'price_category_id',
  'frequency_id',
  'purity_id',
  'grade_id',
  'capacity_id',
  'cell_format_id',
  'mesh_size_id',
  'sub_product_id',
  'feedstock_id',
  'incoterm_id',
  'country_id',
  'region_id',
  'trade_type_id',
  'service_id',
];

/** Condition for rows that a revision created. */
const madeIn = (table: string, row: string): string => `(
  (${row}.revision = at
    or exists (select from ${table}_history h where h.id = ${row}.id and h.revision = at))
  and not exists (select from ${table}_history h where h.id = ${row}.id and h.revision_to = at))`;

const MADE = `
create function prices_made_in(at bigint) returns setof integer language sql stable
  set search_path = pg_catalog, public, pg_temp
begin atomic
  select p.id from price p where ${madeIn('price', 'p')};
end;
comment on function prices_made_in(bigint) is 'Present prices that a revision added.';

create function names_made_in(at bigint) returns table (kind text, id integer, name text)
  language sql stable set search_path = pg_catalog, public, pg_temp
begin atomic
  with made as materialized (
    select 'product' as kind, d.id, d.name from product d where ${madeIn('product', 'd')}
    union all
    select d.kind, d.id, d.name from dimension_value d where ${madeIn('dimension_value', 'd')}
    union all
    select 'currency', c.id, c.iso from currency c where ${madeIn('currency', 'c')}
  ), kept as materialized (
    select * from price p where exists (select from made)
      and p.id not in (select prices_made_in(at))
  ), used as materialized (
    select 'product' as kind, product_id as id from kept
    union select 'currency', currency_id from kept
    union select 'currency', s.base_currency_id from fx_source s
    union select 'currency', m.id from made m, fx_source s where m.kind = 'currency'
      and exists (select from fx_rate r where r.source = s.slug and r.currency_id = m.id
        and r.revision <> at)
    union select 'value', value.id from kept
      cross join lateral unnest(array[${DIMENSIONS.join(', ')}]) as value (id)
  )
  select m.kind, m.id, m.name from made m
    where not exists (select from used u where u.id = m.id
      and u.kind = case when m.kind in ('product', 'currency') then m.kind else 'value' end);
end;
comment on function names_made_in(bigint) is
  'Products, dimension values and currencies that a revision added and no other revision uses.';
`;

/*
 * The account of loads cannot delete prices or update the ledger. Inserting an undo into the ledger
 * does both, only for the batch that it undoes. The ledger row and the history remain.
 */
const TAKE_BACK = `
create function take_back() returns trigger language plpgsql
  security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  taken load_batch;
  batch load_batch;
  taken_by integer := new.id;
  made integer[];
begin
  select * into taken from load_batch where id = new.undoes for update;
  if new.status <> 'applied' or taken.status <> 'applied' or taken.undone_by is not null then
    raise exception 'batch % is not in force', taken.id;
  end if;
  if new.revision is distinct from current_revision() then
    raise exception 'batch % has to be written in its own revision', new.id;
  end if;

  -- Undoing an undo restores the batch that it undid, and so on along the chain.
  batch := taken;
  loop
    if batch.undone_by is not null and batch.undone_by <> taken_by then
      raise exception 'batch % was taken back by batch %', batch.id, batch.undone_by;
    end if;
    update load_batch set undone_by = case when batch.undone_by is null then taken_by end
      where id = batch.id;
    exit when batch.undoes is null;
    taken_by := batch.id;
    select * into batch from load_batch where id = batch.undoes for update;
  end loop;

  if new.revision is null or taken.revision is null then
    return null;
  end if;
  delete from price where id in (select prices_made_in(taken.revision));
  -- Read before the deletion, which would change the result of the function.
  made := array(select m.id from names_made_in(taken.revision) m where m.kind = 'product');
  delete from product where id = any(made);
  made := array(select m.id from names_made_in(taken.revision) m where m.kind = 'currency');
  delete from currency where id = any(made);
  made := array(select m.id from names_made_in(taken.revision) m
    where m.kind not in ('product', 'currency'));
  delete from dimension_value where id = any(made);
  return null;
end $$;
comment on function take_back() is
  'Undoes the batch of an undo: deletes its prices and names, unless others use them.';
revoke execute on function take_back() from public;
create trigger load_batch_takes_back after insert on load_batch for each row
  when (new.undoes is not null) execute function take_back();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const part of [MADE, TAKE_BACK]) await sql.raw(part).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop trigger load_batch_takes_back on load_batch;
    drop function take_back(), names_made_in(bigint), prices_made_in(bigint);
  `)
    .execute(db);
}
