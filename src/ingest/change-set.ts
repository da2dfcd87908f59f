import { type RawBuilder, sql } from 'kysely';
import type { Trx } from './reference.ts';
import type { Stamp, Target } from './targets.ts';

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

/** A value that changes; no `before` is published, no `after` is withdrawn. */
export interface ValueChange {
  /** Of a price or currency; of a rate that an undo changes, source and currency. */
  readonly code: string;
  readonly date: string;
  readonly before: Values | null;
  readonly after: Values | null;
}

/** The first rows of a query, by code and date, and how many it has. */
export async function firstOf<T extends object>(
  trx: Trx,
  query: RawBuilder<T>,
): Promise<Listed<T>> {
  const { rows } = await sql<T & { total?: number }>`
    select *, (count(*) over ())::float8 as total from (${query}) as found
    order by 1, 2 limit ${PREVIEW_MAX}`.execute(trx);
  const total = rows[0]?.total ?? 0;
  for (const row of rows) delete row.total;
  return { total, shown: rows };
}

/** Values before and after a change, as a query has them. */
export interface ValueRow {
  readonly code: string;
  readonly date: string;
  readonly low_before: string | null;
  readonly mid_before: string | null;
  readonly high_before: string | null;
  readonly low: string | null;
  readonly mid: string | null;
  readonly high: string | null;
}

const valuesOf = (low: string | null, mid: string | null, high: string | null): Values | null =>
  mid === null ? null : { low, mid, high };

/** A row as a change. */
export const valueChange = ({ code, date, low, mid, high, ...row }: ValueRow): ValueChange => ({
  code,
  date,
  before: valuesOf(row.low_before, row.mid_before, row.high_before),
  after: valuesOf(low, mid, high),
});

/** The state of a change: `new` is published, `changed` is corrected, `gone` is withdrawn. */
type Change = 'new' | 'changed' | 'gone';

/**
 * The changes of one state in `load_change`: of a load under the names that the file gives its
 * prices, of what is withdrawn under their codes. Values that a load publishes for the first time
 * are too many to be listed.
 */
export async function listChanges(trx: Trx, state: Change): Promise<Listed<ValueChange>> {
  const { total, shown } = await firstOf(
    trx,
    sql<ValueRow>`
      select coalesce(case when c.state = 'gone' then p.code end, u.name,
          c.source || ' ' || coalesce(r.iso,
            (select iso from currency_history h where h.id = c.id limit 1)),
          p.code, (select code from price_history h where h.id = c.id limit 1)) as code,
        c.date, c.low_before, c.mid_before, c.high_before, c.low, c.mid, c.high
      from pg_temp.load_change c left join pg_temp.load_subject u using (subject)
        left join price p on c.source is null and p.id = c.id
        left join currency r on c.source is not null and r.id = c.id
      where c.state = ${state} and (c.state <> 'new' or c.corrections is not null
        or u.name is null)`,
  );
  return { total, shown: shown.map(valueChange) };
}

/** How many values a change withdraws, corrects and publishes. */
type Written = Readonly<Record<'withdrawn' | 'corrected' | 'inserted', number>>;

/**
 * Writes what is new by the staging tables, and the changes of `load_change`; a revision must be
 * open. Two targets may be written one after another: points, and the rates of a source.
 * @throws Error when other rows were written than planned
 */
export async function writeChanges(
  trx: Trx,
  targets: readonly Target[],
  stamp: Stamp,
  planned: Written,
  isInOrder = false,
): Promise<void> {
  const run = async (statement: (target: Target) => RawBuilder<unknown>): Promise<number> => {
    let rows = 0;
    for (const target of targets) {
      rows += Number((await statement(target).execute(trx)).numAffectedRows);
    }
    return rows;
  };
  const withdrawn = await run((target) => target.remove);
  const inserted = await run((target) => target.insert(stamp, isInOrder));
  const corrected = await run((target) => target.correct(stamp));
  const written: Written = { withdrawn, corrected, inserted };
  const differing = (Object.keys(written) as (keyof Written)[]).filter(
    (each) => written[each] !== planned[each],
  );
  if (differing.length === 0) return;
  const counts = differing.map((each) => `${each} ${written[each]} values, not ${planned[each]}`);
  throw new Error(`the change does not do what was planned: ${counts.join(', ')}`);
}
