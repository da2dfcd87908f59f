import { type Kysely, type RawBuilder, sql } from 'kysely';
import { columnName, DIMENSIONS } from '../../catalog/dimensions.ts';
import { numberOf, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { Slice } from '../../std/turns.ts';
import type { PriceAttributes } from '../market/query.ts';
import type { ChangeRun } from './segments.ts';

/** The value of a point: numbers as decimal text, the time as PostgreSQL prints it. */
export interface PointValue {
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
  readonly publishedAt: string;
  readonly corrections: number;
}

/** A point before and after a revision; null if it did not exist. */
export interface ChangedPoint {
  readonly date: string;
  readonly before: PointValue | null;
  readonly after: PointValue | null;
}

/** A price before and after a revision; null if it did not exist. */
export interface ChangedPrice {
  readonly before: PriceAt | null;
  readonly after: PriceAt | null;
}

/** A price at a revision. */
export interface PriceAt {
  readonly price: PriceAttributes;
  /** The newest revision of the reference data at that revision. */
  readonly reference: string;
}

type PointRow = { readonly place: string; readonly date: string } & Readonly<
  Record<`${'was' | 'is'}_${'low' | 'mid' | 'high' | 'published_at'}`, string | null> &
    Record<`${'was' | 'is'}_corrections`, number | null>
>;

/** Reads the changed points of each run with points, in the order of their dates. */
export async function changedPoints(
  db: Kysely<Database>,
  runs: readonly ChangeRun[],
): Promise<ReadonlyMap<ChangeRun, readonly ChangedPoint[]>> {
  const wanted = runs.filter((each) => each.points > 0);
  const found = new Map<ChangeRun, ChangedPoint[]>(wanted.map((each) => [each, []]));
  if (wanted.length === 0) return found;
  const { rows } = await pointsStatement(wanted).execute(db);
  const slice = new Slice();
  for (const row of rows) {
    if (slice.isOver) await slice.yieldIfOver();
    const run = wanted[Number(row.place) - 1] as ChangeRun;
    const { date } = row;
    found.get(run)?.push({ date, before: pointOf(row, 'was'), after: pointOf(row, 'is') });
  }
  return found;
}

function pointOf(row: PointRow, side: 'was' | 'is'): PointValue | null {
  const mid = row[`${side}_mid`];
  const publishedAt = row[`${side}_published_at`];
  const corrections = row[`${side}_corrections`];
  if (mid === null || publishedAt === null || corrections === null) return null;
  return { low: row[`${side}_low`], mid, high: row[`${side}_high`], publishedAt, corrections };
}

/** The newest revision of runs, which are in the order of their numbers. */
const newestOf = (runs: readonly ChangeRun[]): string => runs.at(-1)?.revision ?? '0';

/**
 * The statement that reads the points of runs. Values that a revision wrote are in `series` or, if
 * superseded since, in its history. Values that it ended are in the history. For each price it
 * reads only the dates between the first and the last change.
 */
const pointsStatement = (runs: readonly ChangeRun[]) => {
  const column = <T>(of: (run: ChangeRun) => T): T[] => runs.map(of);
  return sql<PointRow>`
    select s.place, c.*
    from unnest(${column((each) => numberOf(each.revision))}::bigint[],
        ${column((each) => each.priceId)}::integer[],
        ${column((each) => each.firstDate)}::date[], ${column((each) => each.lastDate)}::date[],
        ${column((each) => each.skipped)}::integer[], ${column((each) => each.points)}::integer[])
      with ordinality as s (revision, price_id, first_date, last_date, skipped, taken, place)
    cross join lateral (
      select coalesce(became.date, was.date) as date,
        was.low as was_low, was.mid as was_mid, was.high as was_high,
        was.published_at as was_published_at, was.corrections as was_corrections,
        became.low as is_low, became.mid as is_mid, became.high as is_high,
        became.published_at as is_published_at, became.corrections as is_corrections
      from (
        select date, low, mid, high, published_at, corrections from series
          where price_id = s.price_id and date between s.first_date and s.last_date
            and revision = s.revision
        union all
        select date, low, mid, high, published_at, corrections from series_history
          where price_id = s.price_id and date between s.first_date and s.last_date
            and revision = s.revision) as became
      full join (
        select date, low, mid, high, published_at, corrections from series_history
          where price_id = s.price_id and revision_to = s.revision
            and date between s.first_date and s.last_date) as was
      on was.date = became.date
      order by 1 offset s.skipped limit s.taken) as c
    where ${requireCommit(newestOf(runs))}
    order by s.place, c.date`;
};

type ChangedPriceRow = PriceAttributes & {
  readonly place: string;
  readonly isBefore: boolean;
  readonly reference: string;
};

/** The columns of `price` that a record shows. */
const ATTRIBUTES = sql.join(
  [
    ...['id', 'code', 'price_type', 'currency_id', 'unit_id', 'product_id', 'name', 'short_name'],
    ...['specification', 'assessment_launched_at', 'price_category_id', 'frequency_id'],
    'payable_reference',
    ...Object.values(DIMENSIONS).map(({ field }) => columnName(field)),
    'vat_country',
  ]
    .map<RawBuilder<unknown>>((column) => sql.ref(column))
    // The same default as in `price_at_4`.
    .concat(sql`coalesce(observes, 'day') as observes`),
);

/** Reads the changed price of each run with one. */
export async function changedPrices(
  db: Kysely<Database>,
  runs: readonly ChangeRun[],
): Promise<ReadonlyMap<ChangeRun, ChangedPrice>> {
  const wanted = runs.filter((each) => each.hasPrice);
  const found = new Map<ChangeRun, ChangedPrice>(
    wanted.map((each) => [each, { before: null, after: null }]),
  );
  if (wanted.length === 0) return found;
  const { rows } = await sql<ChangedPriceRow>`
    select s.place, side.is_before as "isBefore", reference.revision as reference, p.*
    from unnest(${wanted.map((each) => numberOf(each.revision))}::bigint[],
        ${wanted.map((each) => each.priceId)}::integer[])
      with ordinality as s (revision, price_id, place)
    cross join lateral (values (s.revision - 1, true), (s.revision, false)) as side (at, is_before)
    cross join lateral (select concat_ws('.', newest.revision, r.commit_id) as revision
      from (select coalesce(max(each.revision), 0) as revision from revision_scope each
        where each.scope = 'reference' and each.revision <= side.at) as newest
      left join revision r on r.number = newest.revision) as reference
    cross join lateral (
      select ${ATTRIBUTES} from price where id = s.price_id and revision <= side.at
      union all
      select ${ATTRIBUTES} from price_history
        where id = s.price_id and revision <= side.at and revision_to > side.at) as p
    where ${requireCommit(newestOf(wanted))}`.execute(db);
  for (const { place, isBefore, reference, ...price } of rows) {
    const run = wanted[Number(place) - 1] as ChangeRun;
    const known = found.get(run) ?? { before: null, after: null };
    found.set(run, { ...known, [isBefore ? 'before' : 'after']: { price, reference } });
  }
  return found;
}
