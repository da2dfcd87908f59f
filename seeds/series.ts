import { CORRECTIONS, DISCONTINUED, STEPS, SUSPENDED, WITHOUT_VALUES } from './awkward.ts';
import { assessmentDays, type Calendar, dateOf, dayOf, LAST_DAY, WEEKDAYS } from './calendar.ts';
import { scaledOf, textOf, tickOf } from './decimal.ts';
import { growth, uniformOf } from './random.ts';
import type { SamplePrice } from './sample.ts';
import { pathOf } from './walk.ts';

export interface Values {
  readonly low: string;
  readonly mid: string;
  readonly high: string;
}

/** One day of a sample series. */
export interface SamplePoint extends Values {
  readonly date: string;
  readonly publishedAt: string;
  /** A wrong first publication, and the time of its correction. */
  readonly corrected?: Values & { readonly correctedAt: string };
}

const DOMESTIC = new Set(['EXW', 'In-warehouse', 'Delivered']);

const calendarOf = ({ dimensions }: SamplePrice): Calendar =>
  dimensions['country'] === 'China' ? 'china' : 'target';

/** Time of publication, UTC: the afternoon in China for its domestic prices, else in London. */
const hourOf = ({ dimensions }: SamplePrice): string =>
  dimensions['country'] === 'China' && DOMESTIC.has(dimensions['incoterm'] ?? '')
    ? '08:30:00Z'
    : '16:00:00Z';

/** The days on which a sample price has a value; none before 2021. */
export function valueDays(price: SamplePrice): number[] {
  const { code, frequency, launched } = price;
  if (WITHOUT_VALUES.has(code)) return [];
  const last = dayOf(DISCONTINUED[code] ?? LAST_DAY);
  const [from = Infinity, to = -Infinity] = SUSPENDED[code]?.map(dayOf) ?? [];
  return assessmentDays(frequency, calendarOf(price), launched).filter(
    (day) => day <= last && !(day >= from && day <= to),
  );
}

/** The share of a market's volatility that a price has apart from its drivers. */
const ownShare = ({ category, drivers }: SamplePrice): number =>
  Object.keys(drivers).length === 0 ? 1 : category === 'Exchange' ? 0.06 : 0.2;

/** The tick that traders use, in ten-thousandths, by currency, unit and level. */
function usualTick({ currency, unit }: SamplePrice, mid: number): number {
  const level = Math.abs(mid) / 10_000;
  const ticks: Readonly<Record<string, number>> = {
    'CNY/tonne': level < 5_000 ? 50 : level < 100_000 ? 100 : 500,
    'USD/tonne': level < 5_000 ? 5 : 10,
    'EUR/tonne': level < 5_000 ? 5 : 10,
    'USD/kilogram': level < 100 ? 0.05 : 0.5,
    'EUR/kilogram': level < 100 ? 0.05 : 0.5,
    'USD/pound': 0.01,
    'CNY/kilowatt-hour': 1,
  };
  return (ticks[`${currency}/${unit}`] ?? Infinity) * 10_000;
}

interface PriceLevel {
  readonly mid: number;
  /** The spread, as a multiple of that of the last day. */
  readonly spread: number;
}

/**
 * Turns a logarithm, relative to the last day's, into a level. Payables move in points between
 * nothing and 120; what can be negative moves by sums; everything else by ratios.
 */
function levelOf(price: SamplePrice): (logarithm: number) => PriceLevel {
  const [low, mid, high] = [price.low, price.mid, price.high].map(scaledOf) as [
    number,
    number,
    number,
  ];
  if (price.type === 'payable') {
    const range = 1.5 * (high - low);
    const least = mid - low;
    return (x) => ({ mid: Math.min(Math.max(mid + range * x, least), 1_200_000), spread: 1 });
  }
  if (low <= 0) {
    const range = Math.max(Math.abs(mid), high - low);
    return (x) => ({ mid: mid + range * x, spread: 1 });
  }
  return (x) => {
    const spread = growth(x);
    return { mid: mid * spread, spread };
  };
}

/** The movement of a price in a year, in the unit of `levelOf`. */
const movement = (price: SamplePrice): number =>
  price.type === 'payable' ? 1 : price.volatility * ownShare(price);

const INDEX = new Map(WEEKDAYS.map((day, index) => [day, index]));

type Rounded = readonly [low: number, mid: number, high: number];

/** Low, mid and high of each day, in ten-thousandths, and the tick between neighbouring values. */
function roundedValues(
  price: SamplePrice,
  days: readonly number[],
): { values: Rounded[]; tick: number } {
  const table = [price.low, price.mid, price.high].map(scaledOf) as [number, number, number];
  const [low, mid, high] = table;
  // Payables move in half points from wherever they stand; prices lie on multiples of their tick.
  const tick =
    price.type === 'payable'
      ? 5_000
      : tickOf(Math.min(usualTick(price, mid), (high - low) / 4), table);
  const onTick = (raw: number, base: number): number =>
    base + tick * Math.round((raw - base) / tick);
  const path = pathOf(`price/${price.code}`, movement(price), price.drivers);
  const logarithmOn = (day: number): number => path[INDEX.get(day) ?? -1] ?? 0;
  const last = days.at(-1) ?? 0;
  const level = levelOf(price);
  const width = uniformOf(`spread/${price.code}`);
  const [stepDay = '1970-01-01', stepHeight = 0] = STEPS[price.code] ?? [];
  const values = days.map((day): Rounded => {
    const [below, above] = [0.85 + 0.3 * width(), 0.85 + 0.3 * width()];
    if (day === last) return table;
    const now = level(logarithmOn(day) - logarithmOn(last));
    const raised = now.mid + (day < dayOf(stepDay) ? stepHeight * 10_000 : 0);
    const middle = onTick(raised, mid);
    const bottom = onTick(raised - (mid - low) * now.spread * below, low);
    const top = onTick(raised + (high - mid) * now.spread * above, high);
    const least = price.type === 'payable' ? Math.max(bottom, 0) : bottom;
    return [Math.min(least, middle), middle, Math.max(top, middle)];
  });
  return { values, tick };
}

const valuesOf = ([low, mid, high]: Rounded): Values => ({
  low: textOf(low),
  mid: textOf(mid),
  high: textOf(high),
});

/**
 * The whole series of a sample price, by its frequency and the holidays of its market, ending at
 * the values of its table. The same on every machine and at every time.
 */
export function seriesOf(price: SamplePrice): SamplePoint[] {
  const days = valueDays(price);
  const { values, tick } = roundedValues(price, days);
  const hour = hourOf(price);
  const corrections = CORRECTIONS.filter(({ code }) => code === price.code);
  return days.map((day, index): SamplePoint => {
    const date = dateOf(day);
    const right = values[index] ?? [0, 0, 0];
    const point = { date, ...valuesOf(right), publishedAt: `${date}T${hour}` };
    const correction = corrections.find((each) => each.date === date);
    if (!correction) return point;
    const [low, mid, high] = right;
    const shift = correction.ticks * tick;
    const wrong = valuesOf([low + shift, mid + shift, high + shift]);
    const correctedAt = `${dateOf(WEEKDAYS.find((next) => next > day) ?? day)}T${hour}`;
    return { ...point, ...wrong, corrected: { ...valuesOf(right), correctedAt } };
  });
}
