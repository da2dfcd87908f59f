import { dayText } from '../std/days.ts';
import { decimalText, powerOf10 } from '../std/decimal.ts';
import { Slice } from '../std/turns.ts';
import {
  type CurrencyRates,
  hasRate,
  pairOf,
  type RatePair,
  type RateTable,
  rateScale,
  scaledRate,
} from './rate-table.ts';
import { over, type Rational } from './rational.ts';
import { CROSS_DECIMALS, roundedText } from './rounding.ts';

/** One day of a pair: units of the quote currency per base unit, and both published legs. */
interface DayRate {
  readonly date: string;
  readonly rate: string;
  readonly legs: { readonly base: string; readonly quote: string };
}

const legText = (leg: CurrencyRates | null, day: number): string =>
  decimalText({ digits: BigInt(scaledRate(leg, day)), scale: rateScale(leg, day) });

const legValue = (leg: CurrencyRates | null, day: number): Rational => ({
  numerator: BigInt(scaledRate(leg, day)),
  denominator: powerOf10(rateScale(leg, day)),
});

/**
 * The rates of a pair on the days within two bounds with both legs published, in date order.
 * @param table null if the source does not exist
 */
export async function dayRates(
  table: RateTable | null,
  base: number,
  quote: number,
  bounds: { readonly from: string | null; readonly to: string | null },
): Promise<DayRate[]> {
  const pair = table && pairOf(table, base, quote);
  if (!pair) return [];
  const found: DayRate[] = [];
  const slice = new Slice();
  for (const day of daysOf(pair)) {
    if (slice.isOver) await slice.yieldIfOver();
    if (!hasRate(pair.from, day) || !hasRate(pair.to, day)) continue;
    const date = dayText(day);
    if ((bounds.from !== null && date < bounds.from) || (bounds.to !== null && date > bounds.to)) {
      continue;
    }
    const exact = over(legValue(pair.to, day), legValue(pair.from, day));
    found.push({
      date,
      rate: roundedText(exact, { decimals: CROSS_DECIMALS }),
      legs: { base: legText(pair.from, day), quote: legText(pair.to, day) },
    });
  }
  return found;
}

/** The days that both legs of a pair span; none for the base against itself. */
function* daysOf({ from, to }: RatePair): Generator<number> {
  const legs = [from, to].filter((each) => each !== null);
  if (legs.length === 0) return;
  const first = Math.max(...legs.map((each) => each.firstDay));
  const last = Math.min(...legs.map((each) => each.lastDay));
  for (let day = first; day <= last; day += 1) yield day;
}

/** The first and last day with a rate of a currency; null without any rate. */
export function rateSpan(
  table: RateTable | null,
  currency: number,
): { readonly first: string; readonly last: string } | null {
  if (table === null) return null;
  const own = table.currencies.get(currency);
  // The base has the rate 1 on every day on which another currency has a rate.
  const legs = currency === table.base.id ? [...table.currencies.values()] : own ? [own] : [];
  if (legs.length === 0) return null;
  const first = Math.min(...legs.map((each) => each.firstDay));
  return { first: dayText(first), last: dayText(Math.max(...legs.map((each) => each.lastDay))) };
}
