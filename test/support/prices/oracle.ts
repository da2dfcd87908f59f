import type pg from 'pg';
import { FIELDS, SPECIFIED } from './specification.ts';

/** A point with its numbers as the text that was sent. */
export type PointText = string;

/** A price from the plain tables, with the values that filters match. */
export interface OraclePrice {
  readonly market: string;
  readonly code: string;
  /** The value of the price by filter; absent if it has none. */
  readonly values: ReadonlyMap<string, { readonly id: string; readonly name: string }>;
  /** Day and text of each point, in date order. */
  readonly points: readonly (readonly [date: string, text: PointText])[];
}

export interface Filters {
  readonly dateFrom?: string;
  readonly dateTo?: string;
  readonly codes?: readonly string[];
  readonly [list: string]: string | readonly string[] | undefined;
}

const keys = new Map<string, string>();

/** A second implementation of the match key, written from the contract; memoized. */
export function keyOf(text: string): string {
  let key = keys.get(text);
  if (key === undefined) {
    key = text.normalize('NFKC').trim().split(/\s+/u).join(' ').toLowerCase();
    keys.set(text, key);
  }
  return key;
}

const snake = (field: string): string =>
  field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** All filters except product and type, which have their own columns. */
const DIMENSIONS = Object.entries(FIELDS).filter(
  ([filter]) => filter !== 'products' && filter !== 'priceTypes',
);

const PRICES = `
  select m.slug as market, p.code, p.id,
    json_build_object(
      'products', json_build_object('id', product.uuid, 'name', product.name),
      'priceTypes', (select json_build_object('id', uuid, 'name', name) from dimension_value
        where kind = 'price-type' and slug = p.price_type),
      ${DIMENSIONS.map(
        ([filter, field]) => `'${filter}', (select json_build_object('id', uuid, 'name', name)
          from dimension_value where id = p.${snake(field)}_id)`,
      ).join(', ')}) as values
  from price p join market m on m.id = p.market_id join product on product.id = p.product_id
  order by p.code collate "C"`;

const POINTS = `
  select price_id, date::text, low::text, mid::text, high::text, corrections::text,
    to_char(published_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as published
  from series order by price_id, date`;

/** A point as text, in the order of its members on the wire. */
export const pointText = (...members: readonly (string | null)[]): PointText => members.join(' ');

const withoutZeros = (instant: string): string => `${instant.replace(/\.?0*$/, '')}Z`;

/** Reads all prices and points from the plain tables. */
export async function readOracle(pool: pg.Pool): Promise<readonly OraclePrice[]> {
  const prices = await pool.query(PRICES);
  const points = await pool.query(POINTS);
  const byPrice = Map.groupBy(points.rows, (row) => row.price_id);
  return prices.rows.map(({ id, market, code, values }) => ({
    market,
    code,
    values: new Map(Object.entries<{ id: string; name: string }>(values).filter(([, v]) => v)),
    points: (byPrice.get(id) ?? []).map((row) => {
      const { date, low, mid, high, corrections } = row;
      const published = withoutZeros(row.published);
      return [date, pointText(date, low, mid, high, published, corrections)] as const;
    }),
  }));
}

const listsOf = (filters: Filters): [string, readonly string[]][] =>
  Object.entries(filters).flatMap(([name, list]) =>
    name !== 'codes' && Array.isArray(list) && list.length > 0 ? [[name, list]] : [],
  );

const has = (price: OraclePrice, filter: string, sent: string): boolean => {
  const value = price.values.get(filter);
  return value !== undefined && [keyOf(value.name), value.id].includes(keyOf(sent));
};

/** Codes are compared exactly, except for ASCII case. */
const codeOf = (code: string): string =>
  [...code].map((each) => (/[A-Z]/.test(each) ? each.toLowerCase() : each)).join('');

/** The expected prices of an answer, in order. */
export function selected(
  all: readonly OraclePrice[],
  market: string,
  filters: Filters,
): readonly OraclePrice[] {
  const codes = filters.codes?.map(codeOf);
  return all.filter(
    (price) =>
      price.market === market &&
      (codes === undefined || codes.includes(codeOf(price.code))) &&
      listsOf(filters).every(([filter, list]) => list.some((sent) => has(price, filter, sent))),
  );
}

/** The points of a price within the requested dates. */
export const pointsWithin = (price: OraclePrice, { dateFrom, dateTo }: Filters): PointText[] =>
  price.points
    .filter(([date]) => (!dateFrom || date >= dateFrom) && (!dateTo || date <= dateTo))
    .map(([, text]) => text);

/** The pointers of requested values that match no price of the market. */
export function unmatched(
  all: readonly OraclePrice[],
  market: string,
  filters: Filters,
): readonly string[] {
  const own = all.filter((price) => price.market === market);
  const codes = (filters.codes ?? []).flatMap((code, index) =>
    own.some((price) => codeOf(price.code) === codeOf(code)) ? [] : [`/filters/codes/${index}`],
  );
  const values = listsOf(filters).flatMap(([filter, list]) =>
    list.flatMap((sent, index) =>
      own.some((price) => has(price, filter, sent)) ? [] : [`/filters/${filter}/${index}`],
    ),
  );
  return [...codes, ...values].sort();
}

/** The slugs of the specification. */
export const SLUGS: readonly string[] = SPECIFIED.map(({ slug }) => slug);

/** Parses JSON and keeps each number as the text that was sent. */
export const parseExact = (text: string) =>
  JSON.parse(text, (_name, value, context?: { source: string }) =>
    typeof value === 'number' ? context?.source : value,
  );
