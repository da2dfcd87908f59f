import fc from 'fast-check';
import type { Filters, OraclePrice } from './oracle.ts';
import type { SpecifiedMarket } from './specification.ts';

/** A valid request to a market. */
export interface FilterRequest {
  readonly slug: string;
  readonly filters: Filters;
  readonly includeSeries: boolean;
}

/** Equivalent spellings of a text. */
const respelled = (text: string): fc.Arbitrary<string> =>
  fc.constantFrom(
    text,
    text.toUpperCase(),
    text.toLowerCase(),
    ` ${text.replaceAll(' ', '\u00a0 ')} `,
    text.replace(/[!-~]/g, (each) => String.fromCharCode(each.charCodeAt(0) + 0xfee0)),
    text.normalize('NFD'),
  );

/** Values that match no price, including SQL fragments. */
const UNKNOWN_VALUES = ['Unobtainium', '%', '_', "'; drop table price; --", 'null', '{}', '\\'];
const unknownValue = fc.constantFrom(...UNKNOWN_VALUES, '00000000-0000-4000-8000-000000000000');

/** Values for a filter: mostly of the market, some of other markets, some unknown. */
export function filterValue(
  all: readonly OraclePrice[],
  slug: string,
  filter: string,
): fc.Arbitrary<string> {
  const textsOf = (prices: readonly OraclePrice[]) =>
    prices.flatMap((each) => {
      const value = each.values.get(filter);
      return value ? [value.name, value.name, value.id] : [];
    });
  const from = (texts: readonly string[]) =>
    texts.length > 0 ? fc.constantFrom(...texts).chain(respelled) : unknownValue;
  return fc.oneof(
    { weight: 12, arbitrary: from(textsOf(all.filter((each) => each.market === slug))) },
    { weight: 1, arbitrary: from(textsOf(all.filter((each) => each.market !== slug))) },
    { weight: 1, arbitrary: unknownValue },
  );
}

/** A day of the sample period, or a little beyond. */
export const day = fc
  .integer({ min: Date.UTC(2020, 11, 1) / 86_400_000, max: Date.UTC(2026, 7, 1) / 86_400_000 })
  .map((days) => new Date(days * 86_400_000).toISOString().slice(0, 10));

const range = fc
  .tuple(day, day)
  .map((both) => both.toSorted())
  .map(([dateFrom = '', dateTo = '']): Filters => ({ dateFrom, dateTo }));

const dates: fc.Arbitrary<Filters> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: day.map((dateFrom) => ({ dateFrom })) },
  { weight: 1, arbitrary: day.map((dateTo) => ({ dateTo })) },
  { weight: 4, arbitrary: range },
);

/** Up to three lists of a market, of up to four values each; an empty one counts as absent. */
export const lists = (
  all: readonly OraclePrice[],
  { slug, filters }: SpecifiedMarket,
): fc.Arbitrary<Filters> => {
  const list = (filter: string) => fc.array(filterValue(all, slug, filter), { maxLength: 4 });
  return fc
    .subarray([...filters], { maxLength: 3 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen.map((each) => [each, list(each)]))));
};

const codes = (all: readonly OraclePrice[], slug: string): fc.Arbitrary<Filters> => {
  const own = all.filter((each) => each.market === slug).map((each) => each.code);
  const others = all.filter((each) => each.market !== slug).map((each) => each.code);
  const code = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...own).chain(respelled) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
    { weight: 1, arbitrary: unknownValue },
  );
  return fc.array(code, { minLength: 1, maxLength: 6 }).map((list) => ({ codes: list }));
};

/** Requests to one market; few with series, which cost the most. */
export const requestsOf = (
  all: readonly OraclePrice[],
  market: SpecifiedMarket,
): fc.Arbitrary<FilterRequest> =>
  fc
    .tuple(
      fc.oneof(
        { weight: 5, arbitrary: lists(all, market) },
        { weight: 1, arbitrary: codes(all, market.slug) },
      ),
      dates,
      fc.integer({ min: 0, max: 9 }),
    )
    .map(([chosen, bounds, draw]) => ({
      slug: market.slug,
      filters: { ...chosen, ...bounds },
      includeSeries: draw === 0,
    }));
