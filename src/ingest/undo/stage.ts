import { type RawBuilder, sql } from 'kysely';
import { CHANGEABLE } from '../prices.ts';
import type { Trx } from '../reference.ts';

/** The tables of what prices refer to, and of prices, each after those that it refers to. */
const ROWS = ['currency', 'product', 'dimension_value', 'price'] as const;
export type RowTable = (typeof ROWS)[number];

/** Rows that a revision removed and that are not there now, as `h`: a query without its columns. */
export const removedIn = (table: RowTable, revision: string): RawBuilder<unknown> => sql`
  from ${sql.ref(`${table}_history`)} h
  where h.revision_to = ${revision}::bigint
    and not exists (select from ${sql.ref(table)} t where t.id = h.id)`;

const listOf = (columns: readonly string[], table: string | null = null) =>
  sql.join(columns.map((column) => sql.ref(table === null ? column : `${table}.${column}`)));

const ATTRIBUTES = Object.keys(CHANGEABLE);

/** Prices `price` whose attributes a revision changed, and `h`, what they were before it. */
export const pricesChangedIn = (revision: string): RawBuilder<unknown> => sql`
  from price_history h join price on price.id = h.id
  where h.revision_to = ${revision}::bigint
    and row(${listOf(ATTRIBUTES, 'price')}) is distinct from row(${listOf(ATTRIBUTES, 'h')})`;

async function columnsOf(trx: Trx, table: RowTable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = to_regclass(quote_ident(${table})) and attnum > 0 and not attisdropped
      and attname <> 'revision'
    order by attnum`.execute(trx);
  return rows.map(({ name }) => name);
}

/** Brings back the rows that a revision removed, each under the id that it had. */
export async function restoreRows(trx: Trx, revision: string): Promise<void> {
  for (const table of ROWS) {
    const columns = await columnsOf(trx, table);
    await sql`
      insert into ${sql.ref(table)} (${listOf(columns)}) overriding system value
      select ${listOf(columns, 'h')} ${removedIn(table, revision)}`.execute(trx);
  }
  await sql`
    update price set (${listOf(ATTRIBUTES)}) = row(${listOf(ATTRIBUTES, 'was')})
    from (select h.* ${pricesChangedIn(revision)}) as was
    where was.id = price.id`.execute(trx);
}

/**
 * The values that a batch changed: low to batch are those of before, which are to be restored, and
 * mid is null where there was none; those of now stand beside them. A rate has a source, and its
 * currency as `id`.
 */
const TABLE = sql`
  create temp table undo_value (
    source text,
    id integer not null,
    date date not null,
    low numeric,
    mid numeric,
    high numeric,
    published_at timestamptz,
    corrections integer,
    batch_id integer,
    low_now numeric,
    mid_now numeric,
    high_now numeric
  ) on commit drop`;

/** A value never counts fewer corrections than it did at any time. */
const CORRECTIONS = sql`
  case when now.mid is not null then now.corrections + 1 else (
    select max(h.corrections) from series_history h
    where h.price_id = k.price_id and h.date = k.date) end`;

/** What a revision changed of points; each price tells between which days that was. */
const points = (revision: string) => sql`
  insert into pg_temp.undo_value
  select null, k.price_id, k.date, was.low, was.mid, was.high, was.published_at,
    case when was.mid is not null then ${CORRECTIONS} end, was.batch_id,
    now.low, now.mid, now.high
  from (
    select s.price_id, s.date from change_segment g join series s on s.price_id = g.price_id
      and s.date between g.first_date and g.last_date and s.revision = g.revision
    where g.revision = ${revision}::bigint
    union
    select h.price_id, h.date from change_segment g join series_history h
      on h.price_id = g.price_id and h.date between g.first_date and g.last_date
      and g.revision in (h.revision, h.revision_to)
    where g.revision = ${revision}::bigint) as k
  left join series_history was on was.price_id = k.price_id and was.date = k.date
    and was.revision_to = ${revision}::bigint
  left join series now on now.price_id = k.price_id and now.date = k.date`;

const rates = (revision: string) => sql`
  insert into pg_temp.undo_value (source, id, date, mid, batch_id, mid_now)
  select k.source, k.currency_id, k.date, was.rate, was.batch_id, now.rate
  from (
    select source, currency_id, date from fx_rate where revision = ${revision}::bigint
    union
    select source, currency_id, date from fx_rate_history
      where ${revision}::bigint in (revision, revision_to)) as k
  left join fx_rate_history was on was.source = k.source and was.currency_id = k.currency_id
    and was.date = k.date and was.revision_to = ${revision}::bigint
  left join fx_rate now on now.source = k.source and now.currency_id = k.currency_id
    and now.date = k.date`;

/** Puts what a revision changed into a table that goes with the transaction. */
export async function stageUndo(trx: Trx, revision: string): Promise<void> {
  await TABLE.execute(trx);
  await points(revision).execute(trx);
  await rates(revision).execute(trx);
  await sql`analyze pg_temp.undo_value`.execute(trx);
}

/** Brings the staged values back to what they were; returns how many rows each step wrote. */
export async function restoreValues(trx: Trx): Promise<Record<'gone' | 'back' | 'again', number>> {
  const run = async (...statements: ReturnType<typeof sql>[]): Promise<number> => {
    let rows = 0;
    for (const each of statements) rows += Number((await each.execute(trx)).numAffectedRows);
    return rows;
  };
  const gone = await run(
    sql`delete from series s using pg_temp.undo_value v
      where v.source is null and v.mid is null and s.price_id = v.id and s.date = v.date`,
    sql`delete from fx_rate r using pg_temp.undo_value v
      where v.mid is null and r.source = v.source and r.currency_id = v.id and r.date = v.date`,
  );
  const back = await run(
    sql`update series s set low = v.low, mid = v.mid, high = v.high,
        published_at = v.published_at, corrections = v.corrections, batch_id = v.batch_id
      from pg_temp.undo_value v
      where v.source is null and v.mid is not null and s.price_id = v.id and s.date = v.date`,
    sql`update fx_rate r set rate = v.mid, batch_id = v.batch_id from pg_temp.undo_value v
      where v.mid is not null and r.source = v.source and r.currency_id = v.id
        and r.date = v.date`,
  );
  const again = await run(
    sql`insert into series
        (price_id, date, low, mid, high, published_at, corrections, batch_id, revision)
      select id, date, low, mid, high, published_at, corrections, batch_id,
        (select current_revision())
      from pg_temp.undo_value
      where source is null and mid is not null and mid_now is null order by id, date`,
    sql`insert into fx_rate (source, currency_id, date, rate, batch_id, revision)
      select source, id, date, mid, batch_id, (select current_revision())
      from pg_temp.undo_value where source is not null and mid is not null and mid_now is null`,
  );
  return { gone, back, again };
}
