import { type RawBuilder, sql } from 'kysely';
import { columnName } from '../../catalog/dimensions.ts';
import { KIND_OF, type Trx } from '../descriptions/known-names.ts';
import type { Batch } from '../load/batches.ts';
import { STAGED_CHANGES } from '../staging/change-set.ts';
import { laterCalendars } from './calendars.ts';
import { type RowTable, removedIn } from './history.ts';

/** A later revision that depends on the changes of a batch. */
export interface Conflict {
  /** Number of the batch; null for a manual change. */
  readonly batch: number | null;
  readonly revision: string;
  /** Format and file of the batch, or the reason of the revision. */
  readonly what: string;
}

/** A query of revisions, as the column `revision`. */
type Revisions = RawBuilder<unknown>;

/** Later changes of rows with the same key, manual or by batches. */
function laterValues(table: 'series' | 'fx_rate', revision: string): Revisions {
  const key =
    table === 'series'
      ? sql`t.price_id = v.id and t.date = v.date and v.source is null`
      : sql`t.source = v.source and t.currency_id = v.id and t.date = v.date`;
  const history = sql.ref(`${table}_history`);
  return sql`
    select t.revision from ${STAGED_CHANGES} v join ${sql.ref(table)} t on ${key}
      where t.revision > ${revision}::bigint
    union select t.revision from ${STAGED_CHANGES} v join ${history} t on ${key}
      where t.revision > ${revision}::bigint
    union select t.revision_to from ${STAGED_CHANGES} v join ${history} t on ${key}
      where t.revision_to > ${revision}::bigint`;
}

/** Later changes of the same prices; for a new price also later changes of its points. */
const laterPrices = (revision: string): Revisions => sql`
  select later.revision
  from change_segment own join change_segment later
    on later.price_id = own.price_id and later.revision > own.revision
  where own.revision = ${revision}::bigint and own.price_changes = 1
    and (later.price_changes = 1 or not exists (select from price_history h
      where h.id = own.price_id and h.revision_to = own.revision))`;

/** The revisions that removed a row. @param id expression for the id of the row */
const removals = (table: RowTable, id: RawBuilder<unknown>): Revisions => {
  const history = sql.ref(`${table}_history`);
  return sql`
    select g.revision_to as revision from ${history} g where g.id = ${id}
      and not exists (select from ${history} n where n.id = g.id and n.revision = g.revision_to)`;
};

/** True if a row is missing and the undo does not restore it. */
const isLost = (table: RowTable, id: RawBuilder<unknown>, revision: string) => sql`(
  not exists (select from ${sql.ref(table)} t where t.id = ${id})
  and not exists (select ${removedIn(table, revision)} and h.id = ${id}))`;

/** Removals of prices and currencies whose values the undo restores. */
function lostSeries(revision: string): Revisions {
  const of = (table: 'price' | 'currency', condition: RawBuilder<unknown>) => sql`
    select r.revision from (
      select distinct id from ${STAGED_CHANGES} where mid is not null and ${condition}) as v
      cross join lateral (${removals(table, sql`v.id`)}) as r
    where ${isLost(table, sql`v.id`, revision)}`;
  return sql`${of('price', sql`source is null`)}
    union ${of('currency', sql`source is not null`)}`;
}

/** Removals of products and dimension values to which restored prices refer. */
function lostReferences(revision: string): Revisions {
  const columns = [...KIND_OF.keys()].map((field) => sql.ref(`p.${columnName(field)}`));
  const of = (table: 'product' | 'dimension_value', ids: RawBuilder<unknown>) => sql`
    select r.revision from (
      select distinct needed.id from price_history p
        cross join lateral unnest(array[${ids}]) as needed (id)
      where p.revision_to = ${revision}::bigint) as v
      cross join lateral (${removals(table, sql`v.id`)}) as r
    where v.id is not null and ${isLost(table, sql`v.id`, revision)}`;
  return sql`${of('product', sql`p.product_id`)}
    union ${of('dimension_value', sql.join(columns))}`;
}

/**
 * Later references of payables to prices that the undo removes. The version in force may be that of
 * an undo, which is no conflict itself: so every version with the reference counts.
 */
const laterReferences = (revision: string): Revisions => sql`
  select version.revision
  from price own join price p
    on p.payable_reference @> jsonb_build_array(jsonb_build_object('code', own.code))
    cross join lateral (select p.revision union all
      select h.revision from price_history h where h.id = p.id
        and h.payable_reference @> jsonb_build_array(jsonb_build_object('code', own.code))
    ) as version
  where own.id in (select prices_made_in(${revision}::bigint))
    and version.revision > ${revision}::bigint`;

/** Removals of prices that restored payables refer to. */
const lostReferenced = (revision: string): Revisions => sql`
  select r.revision from (
    select distinct past.id from price_history p
      cross join lateral jsonb_array_elements(p.payable_reference) as e (entry)
      join price_history past on past.code = e.entry ->> 'code'
    where p.revision_to = ${revision}::bigint) as v
    cross join lateral (${removals('price', sql`v.id`)}) as r
  where ${isLost('price', sql`v.id`, revision)}`;

/** Revisions that added rows with a name or code that the undo restores. */
function takenKeys(revision: string): Revisions {
  const of = (table: RowTable, isSame: RawBuilder<unknown>) => sql`
    select least(t.revision, (select min(g.revision) from ${sql.ref(`${table}_history`)} g
        where g.id = t.id)) as revision
    from ${sql.ref(table)} t join (select h.* ${removedIn(table, revision)}) as b on ${isSame}`;
  return sql`${of('price', sql`b.code_key = t.code_key or b.code = t.code`)}
    union ${of('currency', sql`b.iso = t.iso`)}
    union ${of(
      'product',
      sql`b.market_id = t.market_id and (b.match_key = t.match_key or b.slug = t.slug)`,
    )}
    union ${of(
      'dimension_value',
      sql`b.kind = t.kind and (b.match_key = t.match_key or b.slug = t.slug)`,
    )}`;
}

/** Later batches that were undone, and their undos: together they change nothing. */
const UNDONE_LATER = (revision: string): Revisions => sql`
  select b.revision from load_batch b
    where b.undone_by is not null and b.revision > ${revision}::bigint
  union
  select u.revision from load_batch b join load_batch u on u.id = b.undone_by
    where b.revision > ${revision}::bigint and u.revision is not null`;

/** The later revisions that depend on the changes of a revision, newest first. */
export async function conflictsOf(trx: Trx, revision: string): Promise<Conflict[]> {
  const { rows } = await sql<{ batch: number | null; revision: string; what: string }>`
    with found (revision) as (
      (${laterValues('series', revision)}) union (${laterValues('fx_rate', revision)})
      union (${laterPrices(revision)}) union (${lostSeries(revision)})
      union (${lostReferences(revision)}) union (${takenKeys(revision)})
      union (${laterReferences(revision)}) union (${lostReferenced(revision)})
      union (${laterCalendars(revision)}))
    select b.id as batch, revision_text(r.number) as revision,
      coalesce(b.format || ' ' || b.file_name, r.reason) as what
    from found join revision r on r.number = found.revision
      left join load_batch b on b.revision = r.number
    where r.number not in (${UNDONE_LATER(revision)})
    order by r.number desc`.execute(trx);
  return rows;
}

/** The batch that loaded the same file again, if the undo would also restore the first load. */
export async function secondLoad(trx: Trx, { batch }: Batch): Promise<Conflict[]> {
  const { rows } = await sql<Conflict>`
    with recursive chain as (
      select id, undoes, 0 as place from load_batch where id = ${batch}
      union all
      select b.id, b.undoes, c.place + 1 from chain c join load_batch b on b.id = c.undoes)
    select o.id as batch, coalesce(revision_text(o.revision), '–') as revision,
      o.format || ' ' || o.file_name as what
    from chain c join load_batch f on f.id = c.id join load_batch o
      on (o.sha256, o.format) = (f.sha256, f.format) and o.id <> f.id
        and o.mapping_sha256 is not distinct from f.mapping_sha256
    where c.place % 2 = 1 and f.format not in ('withdraw', 'undo') and f.rejected = 0
      and o.status = 'applied' and o.undone_by is null and o.rejected = 0`.execute(trx);
  return rows;
}

/**
 * The undo of a batch that the undo of this one would undo or restore as well. Without changes,
 * such batches have no revisions that `conflictsOf` compares.
 */
export async function secondUndo(trx: Trx, { batch }: Batch): Promise<Conflict[]> {
  const { rows } = await sql<Conflict>`
    with recursive chain as (
      select id, undoes, undone_by, undone_by as expected from load_batch where id = ${batch}
      union all
      select b.id, b.undoes, b.undone_by, c.id
        from chain c join load_batch b on b.id = c.undoes)
    select o.id as batch, coalesce(revision_text(o.revision), '–') as revision,
      o.format || ' ' || o.file_name as what
    from chain c join load_batch o on o.id = c.undone_by
    where c.undone_by <> c.expected`.execute(trx);
  return rows;
}
