import { UNITS, type UnitSlug } from '../../seeds/reference/units.ts';
import type { Columns, DecimalColumn } from '../../src/conversion/columns.ts';
import { currencyRates, type RateTable } from '../../src/conversion/rate-table.ts';
import type { Unit } from '../../src/conversion/units.ts';
import { dayNumber } from '../../src/std/days.ts';
import { decimalText } from '../../src/std/decimal.ts';

/** A point as texts: date, low, mid, high; null where there is no low or high. */
export type PointTexts = readonly [
  date: string,
  low: string | null,
  mid: string,
  high: string | null,
  corrections?: number,
];

export const dayOf = (date: string): number => {
  const [year, month, day] = date.split('-').map(Number);
  return dayNumber(year ?? 0, month ?? 0, day ?? 0);
};

const decimalsOf = (text: string | null): number => text?.split('.')[1]?.length ?? 0;

const scaledAs = (text: string | null, scale: number): number => {
  if (text === null) return Number.NaN;
  const [whole = '', fraction = ''] = text.split('.');
  return Number(BigInt(whole + fraction.padEnd(scale, '0')));
};

/** Stored columns of some points, published at noon of their day. */
export function columnsOf(rows: readonly PointTexts[]): Columns {
  const scales = rows.map(([, low, mid, high]) => Math.max(...[low, mid, high].map(decimalsOf)));
  const values = (at: 1 | 2 | 3) =>
    Float64Array.from(rows, (row, index) => scaledAs(row[at], scales[index] ?? 0));
  return {
    length: rows.length,
    day: Int32Array.from(rows, ([date]) => dayOf(date)),
    low: values(1),
    mid: values(2),
    high: values(3),
    scale: Uint8Array.from(scales),
    publishedAt: Float64Array.from(rows, ([date]) => (dayOf(date) + 0.5) * 86_400_000_000),
    corrections: Int32Array.from(rows, (row) => row[4] ?? 0),
  };
}

/** One number of a column as text; null where it is null. */
export function textAt(column: DecimalColumn, index: number): string | null {
  const scaled = column.scaled[index] as number;
  if (Number.isNaN(scaled)) return null;
  if (scaled === Number.POSITIVE_INFINITY) return column.wide?.get(index) ?? 'no text';
  return decimalText({ digits: BigInt(scaled), scale: column.scale[index] as number });
}

export const textsOf = (column: DecimalColumn): (string | null)[] =>
  Array.from(column.scaled, (_, index) => textAt(column, index));

const SLUGS = Object.keys(UNITS) as UnitSlug[];

/** The unit of a slug, as the service has it once seeded. */
export const unitOf = (slug: UnitSlug): Unit => ({
  id: SLUGS.indexOf(slug) + 1,
  uuid: `00000000-0000-4000-8000-${String(SLUGS.indexOf(slug) + 1).padStart(12, '0')}`,
  ...UNITS[slug],
});

export const ALL_UNITS: readonly Unit[] = SLUGS.map(unitOf);

/** Numbers of currencies in `ratesOf`. */
export const CURRENCY = { EUR: 1, USD: 2, CNY: 3, JPY: 4, KRW: 5, GBP: 6, INR: 7 } as const;
export type Iso = keyof typeof CURRENCY;

/** A table of rates in EUR, by currency and date. */
export function ratesOf(
  rates: Readonly<Partial<Record<Exclude<Iso, 'EUR'>, Readonly<Record<string, string>>>>>,
): RateTable {
  const currencies = Object.entries(rates).map(([iso, byDate]) => {
    const dates = Object.keys(byDate).sort();
    const days = dates.map(dayOf).join(',');
    const texts = dates.map((date) => byDate[date]).join(',');
    return [CURRENCY[iso as Iso], currencyRates(iso, days, texts)] as const;
  });
  const base = { id: CURRENCY.EUR, iso: 'EUR' };
  return { source: 'ECB', kind: 'published', base, currencies: new Map(currencies) };
}

/** A generator of numbers from 0 up to 1 that repeats for a seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The inverse of a number modulo another, both coprime. */
export function inverse(value: bigint, modulus: bigint): bigint {
  let [r0, r1, s0, s1] = [modulus, value % modulus, 0n, 1n];
  while (r1 !== 0n) {
    const quotient = r0 / r1;
    [r0, r1, s0, s1] = [r1, r0 - quotient * r1, s1, s0 - quotient * s1];
  }
  return ((s0 % modulus) + modulus) % modulus;
}
