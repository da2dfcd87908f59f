import { type RawBuilder, sql } from 'kysely';
import type { RateSource } from './format.ts';

/**
 * Where the staged values of a load go: the points of prices or the rates of a source. Staged
 * values are `v`, their price or currency `u`, the row that is current now `s`.
 */
export interface Target {
  /** Table and condition of the current row. */
  readonly current: RawBuilder<unknown>;
  /** Table and condition of all current rows of the price or currency `u`. */
  readonly held: RawBuilder<unknown>;
  /** Low, mid and high of the current row. */
  readonly before: RawBuilder<unknown>;
  /** Whether the staged values differ from the current ones. */
  readonly differs: RawBuilder<unknown>;
  /** Ids of prices or currencies by the key of `load_subject`. */
  readonly ids: RawBuilder<unknown>;
  /** The column of `load_coverage`. */
  readonly covered: 'price_id' | 'currency_id';
  /** Adds what has no current row. */
  insert(batch: number, loadedAt: string): RawBuilder<unknown>;
  /**
   * Changes what differs and is not outdated. `correctedAt` is the day of publication, YYYY-MM-DD,
   * when the file has one for all its corrections.
   */
  correct(batch: number, correctedAt: string | null, loadedAt: string): RawBuilder<unknown>;
}

/**
 * The staged values without a current row, in the order of the table's key. The order also makes
 * the server find all of them before the first is written: unsorted, each would be searched for
 * in a table that grows meanwhile, which the planner does not foresee (it took minutes, not
 * seconds, for the first rates of an empty table).
 */
const fresh = (current: RawBuilder<unknown>) => sql`(
  select u.id, v.date, v.low, v.mid, v.high, v.published_at
  from pg_temp.load_value v join pg_temp.load_subject u using (subject)
  where not exists (select from ${current})
  order by u.id, v.date) as fresh`;

const pointsNow = sql`series s where s.price_id = u.id and s.date = v.date`;

/** The points of prices. A value published without a time is published when it is loaded. */
export const POINTS: Target = {
  current: pointsNow,
  held: sql`series s where s.price_id = u.id`,
  before: sql`s.low, s.mid, s.high`,
  differs: sql`(v.low, v.mid, v.high) is distinct from (s.low, s.mid, s.high)`,
  ids: sql`select id, code_key as key from price`,
  covered: 'price_id',
  insert: (batch, loadedAt) => sql`
    insert into series (price_id, date, low, mid, high, published_at, batch_id, revision)
    select id, date, low, mid, high, coalesce(published_at, ${loadedAt}), ${batch},
      (select current_revision())
    from ${fresh(pointsNow)}`,
  correct: (batch, correctedAt, loadedAt) => sql`
    update series s set low = d.low, mid = d.mid, high = d.high,
      published_at = coalesce(${correctedAt}::date::timestamp at time zone 'UTC',
        d.published_at, ${loadedAt}),
      corrections = s.corrections + 1, batch_id = ${batch}
    from pg_temp.load_differing d
    where s.price_id = d.id and s.date = d.date and not d.outdated`,
};

/** The exchange rates of one source. */
export function ratesOf({ slug }: RateSource): Target {
  const ratesNow = sql`fx_rate s
    where s.source = ${slug} and s.currency_id = u.id and s.date = v.date`;
  return {
    current: ratesNow,
    held: sql`fx_rate s where s.source = ${slug} and s.currency_id = u.id`,
    before: sql`null::numeric, s.rate, null::numeric`,
    differs: sql`v.mid <> s.rate`,
    ids: sql`select id, lower(iso) as key from currency`,
    covered: 'currency_id',
    insert: (batch) => sql`
      insert into fx_rate (source, currency_id, date, rate, batch_id, revision)
      select ${slug}, id, date, mid, ${batch}, (select current_revision())
      from ${fresh(ratesNow)}`,
    correct: (batch) => sql`
      update fx_rate s set rate = d.mid, batch_id = ${batch}
      from pg_temp.load_differing d
      where s.source = ${slug} and s.currency_id = d.id and s.date = d.date and not d.outdated`,
  };
}
