import { type RawBuilder, sql } from 'kysely';
import type { RateSource } from './formats/format.ts';

/**
 * Where the staged values of a load go: the points of prices or the rates of a source. Their price
 * or currency is `u`, a current row `s`, a staged value that was compared `c`.
 */
export interface Target {
  /** Table and condition of all current rows of the price or currency `u`. */
  readonly held: RawBuilder<unknown>;
  /** Low, mid and high of a current row, under these names. */
  readonly values: RawBuilder<unknown>;
  /** Whether there were values of `u` that are gone now, between its first and last date. */
  readonly hasPast: RawBuilder<unknown>;
  /** The corrections that the value of `u` on the date of `f` had before it went. */
  readonly pastCorrections: RawBuilder<unknown>;
  /** Whether the value of `f` was withdrawn on the day of an edition or later. */
  isWithdrawn(vintage: string | null): RawBuilder<unknown>;
  /** Ids of prices or currencies by the key of `load_subject`. */
  readonly ids: RawBuilder<unknown>;
  /** The column of `load_coverage`. */
  readonly covered: 'price_id' | 'currency_id';
  /** Adds what has no current row; `isInOrder` when the file is price by price, date by date. */
  insert(batch: number, loadedAt: string, isInOrder: boolean): RawBuilder<unknown>;
  /**
   * Changes what differs and is not outdated. `correctedAt` is the day of publication, YYYY-MM-DD,
   * when the file has one for all its corrections.
   */
  correct(batch: number, correctedAt: string | null, loadedAt: string): RawBuilder<unknown>;
}

/**
 * The values that are new, in the order of the table's key: rows then lie and are indexed in the
 * order in which they are read. Values that needed no comparison come straight from the file,
 * which may be in order already.
 */
const fresh = (isInOrder: boolean) => sql`(
  select u.id, v.date, v.low, v.mid, v.high, v.published_at, 0 as corrections
  from pg_temp.load_value v join pg_temp.load_subject u using (subject)
  where not u.is_careful and u.id is not null
  union all
  select u.id, c.date, c.low, c.mid, c.high, c.published_at, coalesce(c.corrections, 0)
  from pg_temp.load_change c join pg_temp.load_subject u using (subject)
  where c.state = 'new'
  ${isInOrder ? sql`` : sql`order by id, date`}) as fresh`;

const past = sql`series_history h where h.price_id = u.id`;

/** The points of prices. A value published without a time is published when it is loaded. */
export const POINTS: Target = {
  held: sql`series s where s.price_id = u.id`,
  values: sql`s.low, s.mid, s.high`,
  hasPast: sql`exists (select from ${past} and h.date between u.first_date and u.last_date)`,
  pastCorrections: sql`(select max(h.corrections) from ${past} and h.date = f.date)`,
  isWithdrawn: (vintage) => sql`exists (
    select from series_history h join load_batch b on b.revision = h.revision_to
    where h.price_id = f.id and h.date = f.date and b.format = 'withdraw'
      and b.undone_by is null and b.vintage >= ${vintage}::date)`,
  ids: sql`select id, code_key as key from price`,
  covered: 'price_id',
  insert: (batch, loadedAt, isInOrder) => sql`
    insert into series
      (price_id, date, low, mid, high, published_at, corrections, batch_id, revision)
    select id, date, low, mid, high, coalesce(published_at, ${loadedAt}), corrections, ${batch},
      (select current_revision())
    from ${fresh(isInOrder)}`,
  correct: (batch, correctedAt, loadedAt) => sql`
    update series s set low = c.low, mid = c.mid, high = c.high,
      published_at = coalesce(${correctedAt}::date::timestamp at time zone 'UTC',
        c.published_at, ${loadedAt}),
      corrections = s.corrections + 1, batch_id = ${batch}
    from pg_temp.load_change c
    where s.price_id = c.id and s.date = c.date and c.state = 'changed'`,
};

/** The exchange rates of one source. */
export const ratesOf = ({ slug }: RateSource): Target => ({
  held: sql`fx_rate s where s.source = ${slug} and s.currency_id = u.id`,
  values: sql`null::numeric as low, s.rate as mid, null::numeric as high`,
  hasPast: sql`false`,
  pastCorrections: sql`null::integer`,
  isWithdrawn: () => sql`false`,
  ids: sql`select id, lower(iso) as key from currency`,
  covered: 'currency_id',
  insert: (batch, _, isInOrder) => sql`
    insert into fx_rate (source, currency_id, date, rate, batch_id, revision)
    select ${slug}, id, date, mid, ${batch}, (select current_revision()) from ${fresh(isInOrder)}`,
  // A source that was just loaded for the first time has no rate by the planner's numbers: left to
  // itself it would look through all changes for each rate. So each change looks for its rate.
  correct: (batch) => sql`
    update fx_rate s set rate = c.mid, batch_id = ${batch}
    from (select v.mid, r.place from pg_temp.load_change v
      cross join lateral (select f.ctid as place from fx_rate f
        where f.source = ${slug} and f.currency_id = v.id and f.date = v.date offset 0) as r
      where v.state = 'changed') as c
    where s.ctid = c.place`,
});
