import { type RawBuilder, sql } from 'kysely';
import type { Trx } from '../descriptions/known-names.ts';
import type { RatePublisher } from '../records/format.ts';

/*
 * Aliases in the statements of this folder:
 *
 *   v  a value of the file; in an undo, a value that the revision changed    load_value
 *   u  its series                                                            load_series
 *   f  what the file states of a value or series
 *   c  a compared value, and n the current value with which it is compared   load_change
 *   s  a current row, and h an earlier one                    series, fx_rate, their history
 *   p, r, b, o  a price, a currency, a batch, the coverage of a batch
 */

/** Entries kept of each list in a preview, unless all are asked for; all entries are counted. */
export const PREVIEW_MAX = 1_000;

/** The first entries of a list, and their total number. */
export interface Listed<T> {
  readonly total: number;
  readonly shown: readonly T[];
}

/** Low, mid and high as decimal text. A rate has only a mid. */
export interface Values {
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
}

/** A changed value. Without `before` it is published, without `after` it is withdrawn. */
export interface ValueChange {
  /** Code of the price or currency; in an undo of rates "source currency". */
  readonly code: string;
  readonly date: string;
  readonly before: Values | null;
  readonly after: Values | null;
}

/**
 * Runs a query for its first rows, ordered by code and date, and its total number of rows.
 * @param most null for all rows
 */
export async function firstOf<T extends object>(
  trx: Trx,
  query: RawBuilder<T>,
  most: number | null,
): Promise<Listed<T>> {
  const { rows } = await sql<T & { total?: number }>`
    select *, (count(*) over ())::float8 as total from (${query}) as found
    order by 1, 2 limit ${most}`.execute(trx);
  const total = rows[0]?.total ?? 0;
  for (const row of rows) delete row.total;
  return { total, shown: rows };
}

/** Values before and after a change, as a query returns them. */
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

/** Converts a query row to a change. */
export const valueChange = ({ code, date, low, mid, high, ...row }: ValueRow): ValueChange => ({
  code,
  date,
  before: valuesOf(row.low_before, row.mid_before, row.high_before),
  after: valuesOf(low, mid, high),
});

/**
 * The effect of a load or undo on a value in `load_change`:
 *
 * - `new` publishes it, `changed` corrects the current value, `gone` withdraws it.
 * - `same`, `outdated` and `withdrawn` change nothing: the current value is equal, a newer edition
 *   holds it, or it was withdrawn and the edition is not newer than the withdrawal.
 * - `fixed` is a current value between those of the file, with which neighbours are compared.
 * - `duplicate`, `refused` and `missing` reject it: the file has a value for the same date before,
 *   a rule forbids it (corrections, jumps, rejected descriptions), or nothing is there to withdraw.
 */
type ChangeState =
  | ('new' | 'changed' | 'gone')
  | ('same' | 'outdated' | 'withdrawn' | 'fixed')
  | ('duplicate' | 'refused' | 'missing');

/**
 * Lists the changes of one state in `load_change`. A load names prices as its file does; a
 * withdrawal names them by code. First publications are too many and are not listed.
 */
export async function listChanges(
  trx: Trx,
  state: Extract<ChangeState, 'new' | 'changed' | 'gone'>,
  most: number | null,
): Promise<Listed<ValueChange>> {
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
    most,
  );
  return { total, shown: shown.map(valueChange) };
}

/** Metadata written with the values of `load_change`: expressions over its rows, `c`. */
export interface RowMetadata {
  readonly batch: RawBuilder<unknown>;
  /** Publication time of a value that has no current row. */
  readonly publishedAt: RawBuilder<unknown>;
  readonly correctedAt: RawBuilder<unknown>;
}

/**
 * The table that receives changes: points of prices, or rates of a source. In its expressions `u`
 * is the series, `s` a current row, `c` a compared staged value.
 */
export interface ChangeTarget {
  /** Slug of the rate source; null for points. */
  readonly source: string | null;
  /** Table and condition of all current rows of the series `u`. */
  readonly currentRows: RawBuilder<unknown>;
  /** Low, mid, high and corrections of a current row, under these names. */
  readonly values: RawBuilder<unknown>;
  /** True if `u` has withdrawn values between its first and last date. */
  readonly hasPast: RawBuilder<unknown>;
  /** Number of corrections of the withdrawn value of `u` on the date of `f`. */
  readonly pastCorrections: RawBuilder<unknown>;
  /** True if the value of `f` was withdrawn on or after the day of an edition. */
  isWithdrawn(vintage: string | null): RawBuilder<unknown>;
  /** Ids of prices or currencies, by the key of `load_series`. */
  readonly ids: RawBuilder<unknown>;
  /** The key column of `load_coverage`. */
  readonly covered: 'price_id' | 'currency_id';
  /** Deletes withdrawn values. */
  readonly remove: RawBuilder<unknown>;
  /** Updates corrected values. */
  correct(metadata: RowMetadata): RawBuilder<unknown>;
  /** Inserts new values; `isInOrder` if the file is sorted by series and date. */
  insert(metadata: RowMetadata, isInOrder: boolean): RawBuilder<unknown>;
}

/**
 * The new values in the order of the table's key, so that rows and index entries are stored in the
 * order in which they are read. Values that need no comparison come straight from the staged file,
 * which may be sorted already.
 */
const newValues = (changes: RawBuilder<unknown>, isInOrder: boolean) => sql`(
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
  currentRows: sql`series s where s.price_id = u.id`,
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
      published_at = ${correctedAt}, corrections = c.corrections, batch_id = ${batch},
      revision = (select current_revision())
    from ${POINT_CHANGES}
    where s.price_id = c.id and s.date = c.date and c.state = 'changed'`,
  insert: ({ batch, publishedAt }, isInOrder) => sql`
    insert into series
      (price_id, date, low, mid, high, published_at, corrections, batch_id, revision)
    select c.id, c.date, c.low, c.mid, c.high, ${publishedAt}, c.corrections, ${batch},
      (select current_revision())
    from ${newValues(POINT_CHANGES, isInOrder)}`,
};

/** The exchange rates of one source. */
export function ratesOf({ slug }: Pick<RatePublisher, 'slug'>): ChangeTarget {
  const changes = sql`(select * from pg_temp.load_change where source = ${slug}) as c`;
  return {
    source: slug,
    currentRows: sql`fx_rate s where s.source = ${slug} and s.currency_id = u.id`,
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
    // After the first load of a source the statistics still show no rates, and the planner would
    // scan all changes for each rate. The lateral join looks up each rate by its key instead.
    correct: ({ batch }) => sql`
      update fx_rate s set rate = c.mid, batch_id = ${batch},
        revision = (select current_revision())
      from (select c.mid, c.batch_id, s.place from ${changes}
        cross join lateral (select s.ctid as place from fx_rate s
          where s.source = ${slug} and s.currency_id = c.id and s.date = c.date offset 0) as s
        where c.state = 'changed') as c
      where s.ctid = c.place`,
    insert: ({ batch }, isInOrder) => sql`
      insert into fx_rate (source, currency_id, date, rate, batch_id, revision)
      select ${slug}, c.id, c.date, c.mid, ${batch}, (select current_revision())
      from ${newValues(changes, isInOrder)}`,
  };
}

/** Numbers of values that a change withdraws, corrects and publishes. */
type WriteCounts = Readonly<Record<'withdrawn' | 'corrected' | 'inserted', number>>;

/**
 * Writes the new values of the staging tables and the changes of `load_change`; requires an open
 * revision. Two targets are possible: points, and the rates of a source.
 * @throws Error if the number of written rows differs from the expected one
 */
export async function writeChanges(
  trx: Trx,
  targets: readonly ChangeTarget[],
  metadata: RowMetadata,
  expected: WriteCounts,
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
  const inserted = await run((target) => target.insert(metadata, isInOrder));
  const corrected = await run((target) => target.correct(metadata));
  const written: WriteCounts = { withdrawn, corrected, inserted };
  const differing = (Object.keys(written) as (keyof WriteCounts)[]).filter(
    (each) => written[each] !== expected[each],
  );
  if (differing.length === 0) return;
  const counts = differing.map((each) => `${each} ${written[each]} values, not ${expected[each]}`);
  throw new Error(`the change wrote other numbers of values than planned: ${counts.join(', ')}`);
}

/**
 * Records the date ranges of each series that an edition covers, so that no older edition
 * overwrites them. A range ends where the database has a value on a day that the file lacks: the
 * edition says nothing about that day.
 */
export async function writeCoverage(trx: Trx, batch: number, target: ChangeTarget): Promise<void> {
  const column = sql.ref(target.covered);
  await sql`
    with span as materialized (
      -- Dates that stay withdrawn are in the file, but not in the database.
      select u.id, min(v.date) as first, max(v.date) as last,
        count(*) - coalesce(max(c.dates), 0) as dates
      from pg_temp.load_value v join pg_temp.load_series u using (series_no)
        left join (select series_no, count(*) as dates from pg_temp.load_change
          where state = 'withdrawn' group by series_no) as c using (series_no)
      where u.id is not null group by u.id
    ), gapped as materialized (
      select u.id, u.first, u.last from span u
      where dates < (select count(*) from ${target.currentRows}
        and s.date between u.first and u.last)
    ), ranges as (
      select id, first, last from span where id not in (select id from gapped)
      union all
      select id, min(date), max(date)
      from (
        select id, date, is_in_file,
          count(*) filter (where not is_in_file) over (partition by id order by date) as gaps
        from (
          select u.id, s.date, exists (
            select from pg_temp.load_value v join pg_temp.load_series f using (series_no)
            where f.id = u.id and v.date = s.date) as is_in_file
          from gapped u cross join lateral
            (select s.date from ${target.currentRows} and s.date between u.first and u.last) as s
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

/** The corrections counter of a value never decreases. */
const CORRECTIONS = sql`
  case when v.was_mid is null then null when now.mid is not null then now.corrections + 1 else (
    select max(h.corrections) from series_history h where h.price_id = v.id and h.date = v.date)
  end`;

/**
 * Fills `load_change` with the reversal of a revision, which restores the value before each change.
 * @param points query of the changed points, with their values before (`was_…`) and after
 * @param rates the same for rates
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

/** The table of staged changes: source, id, date and new mid of each. */
export const STAGED_CHANGES = sql`pg_temp.load_change`;

/** The targets with staged changes: points, and the rates of each source. */
export async function changedTargets(trx: Trx): Promise<ChangeTarget[]> {
  const { rows } = await sql<{ slug: string | null }>`
    select distinct source as slug from pg_temp.load_change`.execute(trx);
  return rows.map(({ slug }) => (slug === null ? POINTS : ratesOf({ slug })));
}
