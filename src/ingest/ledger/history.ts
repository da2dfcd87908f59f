import { type RawBuilder, sql } from 'kysely';
import type { Client } from '../../db/client.ts';
import { rowsOf, withSession } from '../../db/connection.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { CHANGEABLE, CHANGEABLE_COLUMNS, listOf } from '../descriptions/prices.ts';
import { type Batch, readBatch } from '../load/batches.ts';
import { stageReversal, type ValueRow, type Values, valueChange } from '../staging/change-set.ts';
import { type CalendarRowChange, shownCalendars } from './calendars.ts';

/** The rows that a revision wrote to a table, including superseded ones. */
const rowsWritten = (table: string, columns: RawBuilder<unknown>, revision: string) => sql`
  select ${columns} from ${sql.ref(table)} t where t.revision = ${revision}::bigint
  union all
  select ${columns} from ${sql.ref(`${table}_history`)} t where t.revision = ${revision}::bigint`;

/** The rows that a revision superseded. */
const rowsSuperseded = (table: string, columns: RawBuilder<unknown>, revision: string) => sql`
  select ${columns} from ${sql.ref(`${table}_history`)} t
  where t.revision_to = ${revision}::bigint`;

/** Prices and the tables to which they refer, in the order of dependence. */
const ROW_TABLES = ['currency', 'product', 'dimension_value', 'price'] as const;
export type RowTable = (typeof ROW_TABLES)[number];

/**
 * Rows that a revision removed and that are still missing, as `h`: a query without its select list.
 */
export const removedIn = (table: RowTable, revision: string | null): RawBuilder<unknown> => sql`
  from ${sql.ref(`${table}_history`)} h
  where h.revision_to = ${revision}::bigint
    and not exists (select from ${sql.ref(table)} t where t.id = h.id)`;

/** Prices whose attributes a revision changed, as `price`, and their earlier rows, as `h`. */
export const pricesChangedIn = (revision: string | null): RawBuilder<unknown> => sql`
  from price_history h join price on price.id = h.id
  where h.revision_to = ${revision}::bigint
    and row(${listOf(CHANGEABLE_COLUMNS, 'price')})
      is distinct from row(${listOf(CHANGEABLE_COLUMNS, 'h')})`;

async function columnsOf(trx: Trx, table: RowTable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = to_regclass(quote_ident(${table})) and attnum > 0 and not attisdropped
      and attname <> 'revision'
    order by attnum`.execute(trx);
  return rows.map(({ name }) => name);
}

/** Restores the rows that a revision removed, under their original ids. */
export async function restoreRows(trx: Trx, revision: string): Promise<void> {
  for (const table of ROW_TABLES) {
    const columns = await columnsOf(trx, table);
    await sql`
      insert into ${sql.ref(table)} (${listOf(columns)}) overriding system value
      select ${listOf(columns, 'h')} ${removedIn(table, revision)}`.execute(trx);
  }
  await sql`
    update price set (${listOf(CHANGEABLE_COLUMNS)}) = row(${listOf(CHANGEABLE_COLUMNS, 'was')})
    from (select h.* ${pricesChangedIn(revision)}) as was
    where was.id = price.id`.execute(trx);
}

/** Kind and name of a reference row before and after a revision. */
interface NameRow {
  readonly kind: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** The names that a revision added, changed or removed. */
const namesIn = (revision: string): RawBuilder<NameRow> => {
  const part = (table: string, name: string, kind: RawBuilder<unknown>) => {
    const columns = sql`t.id, ${sql.ref(`t.${name}`)} as name, ${kind} as kind`;
    return sql`
      select coalesce(became.kind, was.kind) as kind, was.name as before, became.name as after
      from (${rowsWritten(table, columns, revision)}) as became
        full join (${rowsSuperseded(table, columns, revision)}) as was using (id)`;
  };
  return sql<NameRow>`
    select * from (
      ${part('currency', 'iso', sql`'currency'`)}
      union all ${part('product', 'name', sql`'product'`)}
      union all ${part('dimension_value', 'name', sql`t.kind`)}) as names
    order by kind, coalesce(after, before) collate "C"`;
};

/** A complete row of `price` before and after a revision. */
interface RevisedPriceRow {
  readonly code: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

/** The prices that a revision added, changed or removed. */
const pricesIn = (revision: string): RawBuilder<RevisedPriceRow> => {
  const columns = sql`t.id, t.code, to_jsonb(t) as row`;
  return sql<RevisedPriceRow>`
    select coalesce(became.code, was.code) as code, was.row as before, became.row as after
    from (${rowsWritten('price', columns, revision)}) as became
      full join (${rowsSuperseded('price', columns, revision)}) as was using (id)
    order by coalesce(became.code, was.code) collate "C"`;
};

/** A value before and after a revision; a null mid means no value. */
const BEFORE_AND_AFTER = sql`
  was.low as was_low, was.mid as was_mid, was.high as was_high,
  was.published_at as was_published_at, was.batch_id as was_batch_id,
  became.low, became.mid, became.high`;

/** The points that a revision changed. `change_segment` limits the dates to read of each price. */
const pointsIn = (revision: string) => {
  const within = sql`s.price_id = g.price_id and s.date between g.first_date and g.last_date`;
  const columns = sql`s.date, s.low, s.mid, s.high, s.published_at, s.batch_id`;
  return sql`
    select g.price_id as id, null::text as source, c.*
    from change_segment g cross join lateral (
      select date, ${BEFORE_AND_AFTER}
      from (
        select ${columns} from series s where ${within} and s.revision = g.revision
        union all
        select ${columns} from series_history s where ${within} and s.revision = g.revision
      ) as became
      full join (
        select ${columns} from series_history s where ${within} and s.revision_to = g.revision
      ) as was using (date)
      order by date) as c
    where g.revision = ${revision}::bigint and g.points > 0`;
};

/** The exchange rates that a revision changed. */
const ratesIn = (revision: string) => {
  const columns = sql`t.source, t.currency_id, t.date, null::numeric as low, t.rate as mid,
    null::numeric as high, null::timestamptz as published_at, t.batch_id`;
  return sql`
    select currency_id as id, source, date, ${BEFORE_AND_AFTER}
    from (${rowsWritten('fx_rate', columns, revision)}) as became
      full join (${rowsSuperseded('fx_rate', columns, revision)}) as was
        using (source, currency_id, date)`;
};

/** Low, mid and high before and after a revision, for `load show`. */
type ShownValue = ValueRow & { readonly source: string | null };

const SHOWN = sql`v.source, v.date, v.was_low as low_before, v.was_mid as mid_before,
  v.was_high as high_before, v.low, v.mid, v.high`;

/** The changed points, sorted by code and day. */
const shownPoints = (revision: string) => sql<ShownValue>`
  select p.code, ${SHOWN} from (${pointsIn(revision)}) as v
    cross join lateral (select code from price where id = v.id
      union all select code from price_history where id = v.id limit 1) as p
  order by p.code collate "C", v.date`;

const shownRates = (revision: string) => sql<ShownValue>`
  select coalesce(c.iso, (select h.iso from currency_history h where h.id = v.id limit 1)) as code,
    ${SHOWN}
  from (${ratesIn(revision)}) as v left join currency c on c.id = v.id
  order by source, code, date`;

/** Attributes of a price by field; references are given by name. */
type NamedAttributes = Readonly<Record<string, unknown>>;

/** One change of a batch. */
export interface BatchChange {
  /** The operations of the change feed; names are products, dimension values and currencies. */
  readonly operation:
    | 'published'
    | 'corrected'
    | 'withdrawn'
    | 'price-added'
    | 'price-changed'
    | 'name-added'
    | 'name-changed'
    | 'name-removed'
    | 'calendar-added'
    | 'calendar-changed'
    | 'calendar-removed'
    | 'vat-added'
    | 'vat-changed'
    | 'vat-removed';
  /** Code of the price, currency of the rate, or the name. */
  readonly code: string;
  /** Source of a rate, kind of a name; `holidays`, `calendar` or `price` for calendars; `vat`. */
  readonly of: string | null;
  /** Day of the value; null for other changes. */
  readonly date: string | null;
  /** The value before; for a changed price the changed attributes, for a removed price its name. */
  readonly before: Values | NamedAttributes | null;
  readonly after: Values | NamedAttributes | null;
}

function shownChange({ source: of, ...row }: ShownValue): BatchChange {
  const { before, after, ...change } = valueChange(row);
  const operation = after === null ? 'withdrawn' : before === null ? 'published' : 'corrected';
  return { operation, of, ...change, before, after };
}

/** Names of products and dimension values by id, including removed ones. */
type NamesById = ReadonlyMap<string, string>;

async function namesOf(trx: Trx): Promise<NamesById> {
  const { rows } = await sql<{ place: string; name: string }>`
    select 'product ' || id as place, name from product_history
    union all select 'value ' || id, name from dimension_value_history
    union all select 'product ' || id, name from product
    union all select 'value ' || id, name from dimension_value`.execute(trx);
  return new Map(rows.map(({ place, name }) => [place, name]));
}

/** An attribute as readable text. */
function textOf(column: string, value: unknown, names: NamesById): unknown {
  if (value === null || !column.endsWith('_id')) return value;
  return names.get(`${column === 'product_id' ? 'product' : 'value'} ${value}`) ?? value;
}

function priceChange(
  { code, before: was, after: is }: RevisedPriceRow,
  names: NamesById,
): BatchChange {
  const common = { code, of: null, date: null };
  if (was === null) {
    return { operation: 'price-added', ...common, before: null, after: { name: is?.['name'] } };
  }
  if (is === null) {
    return { operation: 'withdrawn', ...common, before: { name: was['name'] }, after: null };
  }
  const before: Record<string, unknown> = {};
  const after: Record<string, unknown> = {};
  for (const [column, field] of Object.entries(CHANGEABLE)) {
    if (JSON.stringify(was[column]) === JSON.stringify(is[column])) continue;
    before[field] = textOf(column, was[column], names);
    after[field] = textOf(column, is[column], names);
  }
  return { operation: 'price-changed', ...common, before, after };
}

function calendarChange({ kind, name, before, after }: CalendarRowChange): BatchChange {
  const asMembers = (row: CalendarRowChange['after']) =>
    typeof row === 'string' ? { calendar: row } : row;
  const end = before === null ? 'added' : after === null ? 'removed' : 'changed';
  const values = { before: asMembers(before), after: asMembers(after) };
  const of = kind === 'vat' ? 'vat' : 'calendar';
  return { operation: `${of}-${end}`, code: name, of: kind, date: null, ...values };
}

async function* rowsAs<T>(
  trx: Trx,
  query: RawBuilder<T>,
  changeOf: (row: T) => BatchChange,
): AsyncGenerator<BatchChange> {
  for await (const row of rowsOf(trx, query)) yield changeOf(row);
}

/**
 * All changes of a revision: names, prices, calendars and VAT, then points and rates sorted by code
 * and day. Memory does not grow with their number.
 */
async function* changesOf(trx: Trx, revision: string): AsyncGenerator<BatchChange> {
  yield* rowsAs(trx, namesIn(revision), ({ kind, before, after }) => ({
    operation: before === null ? 'name-added' : after === null ? 'name-removed' : 'name-changed',
    code: after ?? before ?? '',
    of: kind,
    date: null,
    before: null,
    after: null,
  }));
  const names = await namesOf(trx);
  yield* rowsAs(trx, pricesIn(revision), (row) => priceChange(row, names));
  yield* rowsAs(trx, shownCalendars(revision), calendarChange);
  yield* rowsAs(trx, shownPoints(revision), shownChange);
  yield* rowsAs(trx, shownRates(revision), shownChange);
}

/**
 * Reads a ledger row and streams the changes of its batch, in one snapshot. Memory does not grow
 * with the number of changes.
 * @param write consumes the changes
 * @throws UnknownBatchError if no batch has this number, and errors of `write`
 */
export const showBatch = (
  client: Client,
  number: number,
  write: (batch: Batch, changes: AsyncIterable<BatchChange>) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> =>
  withSession(client, signal, ({ db }) =>
    db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async (trx) => {
        const batch = await readBatch(trx, number);
        const revision = batch.revision?.split('.')[1];
        await write(batch, revision === undefined ? noChanges() : changesOf(trx, revision));
      }),
  );

async function* noChanges(): AsyncGenerator<never> {}

/** Stages the reversal of the values of a revision. */
export const stageUndone = (trx: Trx, revision: string): Promise<void> =>
  stageReversal(trx, pointsIn(revision), ratesIn(revision));
