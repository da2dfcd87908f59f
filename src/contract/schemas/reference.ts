import Type, { type TObject } from 'typebox';
import { closed, Day, decimal, Instant, nullable, open, ref, Warning } from './components.ts';

const snapshot = {
  revision: Type.String({ description: 'Revision of the data that was read, opaque' }),
  asOf: Instant('Commit time of that revision'),
};

const ofSource = {
  source: Type.String({ description: 'Source of the exchange rates that conversions use' }),
  warnings: Type.Array(ref(Warning), { description: '`sample_rates` if the rates are invented' }),
};

const CurrencyEntry = open(
  {
    id: Type.String({ format: 'uuid' }),
    iso: Type.String({ description: 'ISO 4217 code' }),
    name: Type.String(),
    symbol: Type.String(),
    firstRateDate: nullable(Day('First day with a rate of the source, or null')),
    lastRateDate: nullable(Day('Last day with a rate of the source, or null')),
  },
  { $id: 'CurrencyEntry' },
);

export const CurrencyList = open(
  { $metadata: open({ ...snapshot, ...ofSource }), data: Type.Array(ref(CurrencyEntry)) },
  { $id: 'CurrencyList' },
);

const UnitEntry = open(
  {
    id: Type.String({ format: 'uuid' }),
    name: Type.String(),
    symbol: Type.String(),
    dimension: Type.String({ description: 'Units convert inside one dimension only' }),
    factor: decimal('Exact factor to the base of the dimension (kg, kWh, piece …)'),
    rec20: nullable(Type.String({ description: 'Code of UNECE Recommendation 20' })),
  },
  { $id: 'UnitEntry' },
);

export const UnitList = open(
  { $metadata: open(snapshot), data: Type.Array(ref(UnitEntry)) },
  { $id: 'UnitList' },
);

const RateEntry = open(
  {
    date: Day('Day of the rates'),
    rate: decimal('Units of the quote currency for one of the base, rounded for reading'),
    legs: open({
      base: decimal('Units of the base currency for one of sourceBase, as published'),
      quote: decimal('Units of the quote currency for one of sourceBase, as published'),
    }),
  },
  { $id: 'RateEntry', description: 'Conversions use the two legs, never the rounded rate' },
);

export const RateList = open(
  {
    $metadata: open({
      ...snapshot,
      ...ofSource,
      sourceBase: nullable(Type.String(), {
        description: 'Currency that the source quotes against; null if there is no such source',
      }),
      base: Type.String(),
      quote: Type.String(),
      rounding: Type.String({ description: 'Rounding rule of `rate`' }),
    }),
    data: Type.Array(ref(RateEntry)),
  },
  { $id: 'RateList' },
);

const code = (description: string) =>
  Type.String({ pattern: '^[A-Za-z]{3}$', description: `${description}, ISO 4217` });

/** The query of `GET /v3/reference/rates`. */
export const RateQuery = closed({
  base: code('Base currency: the rate is for one unit of it'),
  quote: code('Quote currency: the rate is in it'),
  from: Type.Optional(Day('First day, inclusive')),
  to: Type.Optional(Day('Last day, inclusive')),
});

export const REFERENCE_COMPONENTS: readonly TObject[] = [
  CurrencyEntry,
  CurrencyList,
  UnitEntry,
  UnitList,
  RateEntry,
  RateList,
];
