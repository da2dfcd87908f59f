import { type RawBuilder, sql } from 'kysely';
import { type Classified, NEW_AS_A_WHOLE, NEW_BY_ITSELF } from './classify.ts';
import type { PriceChange, PricePlan } from './price-plan.ts';
import type { Trx } from './reference.ts';

/** Entries of each list of a preview; all are counted. */
export const PREVIEW_MAX = 1_000;

/** The first entries of a list, and how many there are. */
export interface Listed<T> {
  readonly total: number;
  readonly shown: readonly T[];
}

/** Low, mid and high as decimal text. A rate has a mid alone. */
export interface Values {
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
}

/** The new values of one price or currency. */
interface NewValues {
  readonly code: string;
  readonly values: number;
  readonly from: string;
  readonly to: string;
}

/** A published value that would change. */
export interface Correction {
  readonly code: string;
  readonly date: string;
  readonly before: Values;
  readonly after: Values;
}

/** What a load will do, told before it does it. */
export interface LoadPreview {
  readonly newPrices: Listed<{ readonly code: string; readonly name: string | null }>;
  /** One entry for each attribute that changes. */
  readonly changedPrices: Listed<PriceChange>;
  /** Products and values of dimensions that are added. */
  readonly newNames: Listed<{ readonly kind: string; readonly name: string }>;
  readonly newCurrencies: readonly string[];
  /** By price or currency, in the order of codes; `values` is the sum of them all. */
  readonly newValues: Listed<NewValues> & { readonly values: number };
  /** In the order of codes and dates. */
  readonly corrections: Listed<Correction>;
  /** Values on days whose value was withdrawn, which are published again. */
  readonly again: Listed<{ readonly code: string; readonly date: string; readonly after: Values }>;
  readonly unchanged: number;
  /** Left alone: a newer edition brought another value, or it was withdrawn. */
  readonly outdated: number;
  readonly rejected: number;
}

const listed = <T>(all: readonly T[]): Listed<T> => ({
  total: all.length,
  shown: all.slice(0, PREVIEW_MAX),
});

/** The first rows of a query, and how many it has. */
async function firstOf<T extends object>(
  trx: Trx,
  query: RawBuilder<T>,
): Promise<{ total: number; rows: (T & { total: string })[] }> {
  const { rows } = await sql<T & { total: string }>`
    select *, count(*) over () as total from (${query}) as found
    order by code, date limit ${PREVIEW_MAX}`.execute(trx);
  return { total: Number(rows[0]?.total ?? 0), rows };
}

async function newValuesOf(trx: Trx): Promise<Listed<NewValues>> {
  const { total, rows } = await firstOf(
    trx,
    sql<{ code: string; values: string; from: string; to: string }>`
      select name as code, null::date as date, rows as values, first_date as "from",
        last_date as "to"
      from pg_temp.load_subject u
      where ${NEW_AS_A_WHOLE} and rows > 0
      union all
      select u.name, null, count(*), min(c.date), max(c.date)
      from pg_temp.load_change c join pg_temp.load_subject u using (subject)
      where ${NEW_BY_ITSELF} group by u.name`,
  );
  const shown = rows.map(({ code, values, from, to }) => ({
    code,
    values: Number(values),
    from,
    to,
  }));
  return { total, shown };
}

interface ChangeRow extends Values {
  readonly code: string;
  readonly date: string;
  readonly low_before: string | null;
  readonly mid_before: string;
  readonly high_before: string | null;
}

const changesIn = (condition: RawBuilder<unknown>) => sql<ChangeRow>`
  select u.name as code, c.date, c.low, c.mid, c.high, c.low_before, c.mid_before, c.high_before
  from pg_temp.load_change c join pg_temp.load_subject u using (subject)
  where ${condition}`;

const afterOf = ({ low, mid, high }: Values): Values => ({ low, mid, high });

async function correctionsOf(trx: Trx): Promise<Listed<Correction>> {
  const { total, rows } = await firstOf(trx, changesIn(sql`c.state = 'changed'`));
  const shown = rows.map((row) => ({
    code: row.code,
    date: row.date,
    before: { low: row.low_before, mid: row.mid_before, high: row.high_before },
    after: afterOf(row),
  }));
  return { total, shown };
}

async function againOf(trx: Trx): Promise<LoadPreview['again']> {
  const gone = sql`c.state = 'new' and c.corrections is not null`;
  const { total, rows } = await firstOf(trx, changesIn(gone));
  const shown = rows.map((row) => ({ code: row.code, date: row.date, after: afterOf(row) }));
  return { total, shown };
}

/** What was found out about a load. */
interface Found {
  readonly currencies: readonly string[];
  readonly prices: PricePlan;
  readonly values: Classified;
  readonly rejected: number;
}

/** Puts together what a load will do, from its plan and the staging tables. */
export async function previewOf(trx: Trx, found: Found): Promise<LoadPreview> {
  const { currencies, prices, values, rejected } = found;
  const created = prices.created.map(({ code, attributes }) => ({
    code,
    name: attributes['name'] ?? null,
  }));
  const names = prices.newRows.map(({ record }) => ({
    kind: record.kind === 'product' ? record.kind : record.dimension,
    name: record.name,
  }));
  return {
    newPrices: listed(created),
    changedPrices: listed(prices.changes),
    newNames: listed(names),
    newCurrencies: currencies,
    newValues: { ...(await newValuesOf(trx)), values: values.inserted },
    corrections: await correctionsOf(trx),
    again: await againOf(trx),
    unchanged: values.unchanged,
    outdated: values.outdated,
    rejected,
  };
}
