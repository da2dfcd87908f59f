import { type RawBuilder, sql } from 'kysely';
import type { Trx } from '../descriptions/reference.ts';
import type { RateSource } from '../records/format.ts';

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
type ChangeState = 'new' | 'changed' | 'gone';

/**
 * The changes of one state in `load_change`: of a load under the names that the file gives its
 * prices, of what is withdrawn under their codes. Values that a load publishes for the first time
 * are too many to be listed.
 */
export async function listChanges(trx: Trx, state: ChangeState): Promise<Listed<ValueChange>> {
  const { total, shown } = await firstOf(
    trx,
    sql<ValueRow>`
      select coalesce(case when c.state = 'gone' then p.code end, u.name,
          c.source || ' ' || coalesce(r.iso,
            (select iso from currency_history h where h.id = c.id limit 1)),
          p.code, (select code from price_history h where h.id = c.id limit 1)) as code,
        c.date, c.low_before, c.mid_before, c.high_before, c.low, c.mid, c.high
      from pg_temp.load_change c left join pg_temp.load_series u using (series_no)
        left join price p on c.source is null and p.id = c.id
        left join currency r on c.source is not null and r.id = c.id
      where c.state = ${state} and (c.state <> 'new' or c.corrections is not null
        or u.name is null)`,
  );
  return { total, shown: shown.map(valueChange) };
}

/** What is written beside the values of `load_change`: expressions over its rows, `c`. */
export interface RowMetadata {
  readonly batch: RawBuilder<unknown>;
  /** When a value was published that had none before. */
  readonly publishedAt: RawBuilder<unknown>;
  readonly correctedAt: RawBuilder<unknown>;
}

/**
 * Where the values of a change go: the points of prices or the rates of a source. Their price
 * or currency is `u`, a current row `s`, a staged value that was compared `c`.
 */
export interface ChangeTarget {
  /** The source of the rates, a slug; null for points. */
  readonly source: string | null;
  /** Table and condition of all current rows of the price or currency `u`. */
  readonly held: RawBuilder<unknown>;
  /** Low, mid, high and corrections of a current row, under these names. */
  readonly values: RawBuilder<unknown>;
  /** Whether there were values of `u` that are gone now, between its first and last date. */
  readonly hasPast: RawBuilder<unknown>;
  /** The corrections that the value of `u` on the date of `f` had before it went. */
  readonly pastCorrections: RawBuilder<unknown>;
  /** Whether the value of `f` was withdrawn on the day of an edition or later. */
  isWithdrawn(vintage: string | null): RawBuilder<unknown>;
  /** Ids of prices or currencies by the key of `load_series`. */
  readonly ids: RawBuilder<unknown>;
  /** The column of `load_coverage`. */
  readonly covered: 'price_id' | 'currency_id';
  /** Removes what is to go. */
  readonly remove: RawBuilder<unknown>;
  /** Changes what differs and is not outdated. */
  correct(stamp: RowMetadata): RawBuilder<unknown>;
  /** Adds what has no current row; `isInOrder` when the file is price by price, date by date. */
  insert(stamp: RowMetadata, isInOrder: boolean): RawBuilder<unknown>;
}

/**
 * The values that are new, in the order of the table's key: rows then lie and are indexed in the
 * order in which they are read. Values that needed no comparison come straight from the file,
 * which may be in order already.
 */
const fresh = (changes: RawBuilder<unknown>, isInOrder: boolean) => sql`(
  select u.id, v.date, v.low, v.mid, v.high, v.published_at, 0 as corrections,
    null::integer as batch_id
  from pg_temp.load_value v join pg_temp.load_series u using (series_no)
  where not u.is_compared and u.id is not null
  union all
  select coalesce(u.id, c.id), c.date, c.low, c.mid, c.high, c.published_at,
    coalesce(c.corrections, 0), c.batch_id
  from ${changes} left join pg_temp.load_series u using (series_no)
  where c.state = 'new'
  ${isInOrder ? sql`` : sql`order by id, date`}) as c`;

const past = sql`series_history h where h.price_id = u.id`;
const POINT_CHANGES = sql`(select * from pg_temp.load_change where source is null) as c`;

/** The points of prices. */
export const POINTS: ChangeTarget = {
  source: null,
  held: sql`series s where s.price_id = u.id`,
  values: sql`s.low, s.mid, s.high, s.corrections`,
  hasPast: sql`exists (select from ${past} and h.date between u.first_date and u.last_date)`,
  pastCorrections: sql`(select max(h.corrections) from ${past} and h.date = f.date)`,
  isWithdrawn: (vintage) => sql`exists (
    select from series_history h join load_batch b on b.revision = h.revision_to
    where h.price_id = f.id and h.date = f.date and b.format = 'withdraw'
      and b.undone_by is null and b.vintage >= ${vintage}::date)`,
  ids: sql`select id, code_key as key from price`,
  covered: 'price_id',
  remove: sql`
    delete from series s using ${POINT_CHANGES}
    where s.price_id = c.id and s.date = c.date and c.state = 'gone'`,
  correct: ({ batch, correctedAt }) => sql`
    update series s set low = c.low, mid = c.mid, high = c.high,
      published_at = ${correctedAt}, corrections = c.corrections, batch_id = ${batch}
    from ${POINT_CHANGES}
    where s.price_id = c.id and s.date = c.date and c.state = 'changed'`,
  insert: ({ batch, publishedAt }, isInOrder) => sql`
    insert into series
      (price_id, date, low, mid, high, published_at, corrections, batch_id, revision)
    select c.id, c.date, c.low, c.mid, c.high, ${publishedAt}, c.corrections, ${batch},
      (select current_revision())
    from ${fresh(POINT_CHANGES, isInOrder)}`,
};

/** The exchange rates of one source. */
export function ratesOf({ slug }: Pick<RateSource, 'slug'>): ChangeTarget {
  const changes = sql`(select * from pg_temp.load_change where source = ${slug}) as c`;
  return {
    source: slug,
    held: sql`fx_rate s where s.source = ${slug} and s.currency_id = u.id`,
    values: sql`null::numeric as low, s.rate as mid, null::numeric as high,
      null::integer as corrections`,
    hasPast: sql`false`,
    pastCorrections: sql`null::integer`,
    isWithdrawn: () => sql`false`,
    ids: sql`select id, lower(iso) as key from currency`,
    covered: 'currency_id',
    remove: sql`
      delete from fx_rate s using ${changes}
      where s.source = ${slug} and s.currency_id = c.id and s.date = c.date
        and c.state = 'gone'`,
    // A source that was just loaded for the first time has no rate by the planner's numbers: left
    // to itself it would look through all changes for each rate. So each change looks for its rate.
    correct: ({ batch }) => sql`
      update fx_rate s set rate = c.mid, batch_id = ${batch}
      from (select c.mid, c.batch_id, r.place from ${changes}
        cross join lateral (select f.ctid as place from fx_rate f
          where f.source = ${slug} and f.currency_id = c.id and f.date = c.date offset 0) as r
        where c.state = 'changed') as c
      where s.ctid = c.place`,
    insert: ({ batch }, isInOrder) => sql`
      insert into fx_rate (source, currency_id, date, rate, batch_id, revision)
      select ${slug}, c.id, c.date, c.mid, ${batch}, (select current_revision())
      from ${fresh(changes, isInOrder)}`,
  };
}

/** How many values a change withdraws, corrects and publishes. */
type WriteCounts = Readonly<Record<'withdrawn' | 'corrected' | 'inserted', number>>;

/**
 * Writes what is new by the staging tables, and the changes of `load_change`; a revision must be
 * open. Two targets may be written one after another: points, and the rates of a source.
 * @throws Error when other rows were written than planned
 */
export async function writeChanges(
  trx: Trx,
  targets: readonly ChangeTarget[],
  stamp: RowMetadata,
  planned: WriteCounts,
  isInOrder = false,
): Promise<void> {
  const run = async (statement: (target: ChangeTarget) => RawBuilder<unknown>): Promise<number> => {
    let rows = 0;
    for (const target of targets) {
      rows += Number((await statement(target).execute(trx)).numAffectedRows);
    }
    return rows;
  };
  const withdrawn = await run((target) => target.remove);
  const inserted = await run((target) => target.insert(stamp, isInOrder));
  const corrected = await run((target) => target.correct(stamp));
  const written: WriteCounts = { withdrawn, corrected, inserted };
  const differing = (Object.keys(written) as (keyof WriteCounts)[]).filter(
    (each) => written[each] !== planned[each],
  );
  if (differing.length === 0) return;
  const counts = differing.map((each) => `${each} ${written[each]} values, not ${planned[each]}`);
  throw new Error(`the change does not do what was planned: ${counts.join(', ')}`);
}

/**
 * Notes what the edition of a batch held, so that no older one overwrites it later: for each price
 * or currency the ranges of its dates. A range ends where the database has a value on a day on
 * which the file has none, for of that day the edition says nothing.
 */
export async function writeCoverage(trx: Trx, batch: number, target: ChangeTarget): Promise<void> {
  const column = sql.ref(target.covered);
  await sql`
    with span as materialized (
      -- Of the dates of the file the database lacks those that stay withdrawn.
      select u.id, min(v.date) as first, max(v.date) as last,
        count(*) - coalesce(max(w.dates), 0) as dates
      from pg_temp.load_value v join pg_temp.load_series u using (series_no)
        left join (select series_no, count(*) as dates from pg_temp.load_change
          where state = 'withdrawn' group by series_no) as w using (series_no)
      where u.id is not null group by u.id
    ), gapped as materialized (
      select u.id, u.first, u.last from span u
      where dates < (select count(*) from ${target.held} and s.date between u.first and u.last)
    ), ranges as (
      select id, first, last from span where id not in (select id from gapped)
      union all
      select id, min(date), max(date)
      from (
        select id, date, is_in_file,
          count(*) filter (where not is_in_file) over (partition by id order by date) as gaps
        from (
          select u.id, s.date, exists (
            select from pg_temp.load_value v join pg_temp.load_series w using (series_no)
            where w.id = u.id and v.date = s.date) as is_in_file
          from gapped u cross join lateral
            (select s.date from ${target.held} and s.date between u.first and u.last) as s
        ) as days
      ) as numbered
      where is_in_file group by id, gaps
    )
    insert into load_coverage (batch_id, ${column}, first_date, last_date)
    select ${batch}, id, first, last from ranges`.execute(trx);
}

/**
 * Stages the current points of a price between two days for withdrawal.
 * @param from first day, YYYY-MM-DD; null for no bound
 * @returns the number of staged points
 */
export async function stageRange(
  trx: Trx,
  priceId: number,
  from: string | null,
  to: string | null,
): Promise<number> {
  const staged = await sql`
    insert into pg_temp.load_change
      (id, date, low_before, mid_before, high_before, state)
    select price_id, date, low, mid, high, 'gone' from series
    where price_id = ${priceId}
      and date between coalesce(${from}::date, '-infinity') and coalesce(${to}::date, 'infinity')
    `.execute(trx);
  return Number(staged.numAffectedRows);
}

/** A value never counts fewer corrections than it did at any time. */
const CORRECTIONS = sql`
  case when v.was_mid is null then null when now.mid is not null then now.corrections + 1 else (
    select max(h.corrections) from series_history h where h.price_id = v.id and h.date = v.date)
  end`;

/**
 * Fills `load_change` with what takes the values that a revision changed back: each becomes what
 * it was before.
 */
export async function stageReversal(
  trx: Trx,
  points: RawBuilder<unknown>,
  rates: RawBuilder<unknown>,
): Promise<void> {
  const fill = (
    changed: RawBuilder<unknown>,
    now: RawBuilder<unknown>,
    corrections: RawBuilder<unknown>,
  ) => sql`
    insert into pg_temp.load_change (source, id, date, low, mid, high, published_at, batch_id,
      corrections, low_before, mid_before, high_before, state)
    select v.source, v.id, v.date, v.was_low, v.was_mid, v.was_high, v.was_published_at,
      v.was_batch_id, ${corrections}, now.low, now.mid, now.high,
      case when v.was_mid is null and now.mid is null then 'same' when v.was_mid is null then 'gone'
        when now.mid is null then 'new' else 'changed' end
    from (${changed}) as v left join ${now}`;
  const point = sql`series now on now.price_id = v.id and now.date = v.date`;
  const rate = sql`(select source, currency_id, date, null::numeric as low, rate as mid,
      null::numeric as high from fx_rate) as now
    on now.source = v.source and now.currency_id = v.id and now.date = v.date`;
  await fill(points, point, CORRECTIONS).execute(trx);
  await fill(rates, rate, sql`null`).execute(trx);
  await sql`analyze pg_temp.load_change`.execute(trx);
}

/** The staged changes, as a table in a query: source, id and date of each, and its new mid. */
export const STAGED_CHANGES = sql`pg_temp.load_change`;

/** The targets that have staged changes: points, or the rates of each source. */
export async function changedTargets(trx: Trx): Promise<ChangeTarget[]> {
  const { rows } = await sql<{ slug: string | null }>`
    select distinct source as slug from pg_temp.load_change`.execute(trx);
  return rows.map(({ slug }) => (slug === null ? POINTS : ratesOf({ slug })));
}
