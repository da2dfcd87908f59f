/**
 * Converted values per second, against decimal.js and big.js, all in one run and in turns: 250
 * prices of 260 days, low, mid and high, from yuan per tonne to dollars per pound at the rate of
 * each day. Every contender's answers are compared with the exact ones.
 *
 *     npm install --prefix bench --no-save && node bench/conversion.ts [rounds]
 */

import { UNITS } from '../seeds/reference/units.ts';
import {
  type Columns,
  type PointColumns,
  VALUE_NAMES,
  type ValueName,
} from '../src/conversion/columns.ts';
import { convertedPoints, exactValue, observe } from '../src/conversion/convert.ts';
import { outcomeOf } from '../src/conversion/outcome.ts';
import { currencyRates, type RateTable } from '../src/conversion/rate-table.ts';
import { BY_RULE, RoundedColumn } from '../src/conversion/rounding.ts';
import { decimalText } from '../src/std/decimal.ts';

const PRICES = 250;
const DAYS = 260;
const VALUES = PRICES * DAYS * VALUE_NAMES.length;

/** The used part of the API of decimal.js and big.js. */
interface Big {
  times(other: Big): Big;
  div(other: Big): Big;
  abs(): Big;
  lt(other: number): boolean;
  toFixed(): string;
}

/** A compared library: its numbers and its two ways to round half-even. */
interface Peer {
  readonly name: string;
  of(value: string | number): Big;
  toSixDigits(value: Big): Big;
  toTwoDecimals(value: Big): Big;
}

async function load(name: string): Promise<Record<string, unknown>> {
  try {
    return await import(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    console.error(`${name} is not installed: run npm install --prefix bench --no-save`);
    process.exit(1);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the libraries' own types are not installed here.
type Library = any;

async function peers(): Promise<Peer[]> {
  const decimalJs: Library = (await load('decimal.js'))['default'];
  const bigJs: Library = (await load('big.js'))['default'];
  // 20 digits are the default of both; more would cost them more.
  const Decimal = decimalJs.clone({ precision: 20 });
  const Big = bigJs();
  Big.DP = 20;
  const halfEven = 6;
  return [
    {
      name: 'decimal.js',
      of: (value) => new Decimal(value),
      toSixDigits: (value: Library) => value.toSignificantDigits(6, halfEven),
      toTwoDecimals: (value: Library) => value.toDecimalPlaces(2, halfEven),
    },
    {
      name: 'big.js',
      of: (value) => new Big(value),
      toSixDigits: (value: Library) => value.prec(6, Big.roundHalfEven),
      toTwoDecimals: (value: Library) => value.round(2, Big.roundHalfEven),
    },
  ];
}

/** Prices with one decimal in a non-repeating series. */
function pricesOf(): Columns[] {
  return Array.from({ length: PRICES }, (_, price) => {
    const mid = Float64Array.from({ length: DAYS }, (_, day) =>
      Math.round(575_000 + 90_000 * Math.sin(price + day / 40) + ((day * 7919) % 997)),
    );
    return {
      length: DAYS,
      day: Int32Array.from({ length: DAYS }, (_, day) => day),
      low: mid.map((value) => value - 5000),
      mid,
      high: mid.map((value) => value + 5000),
      scale: new Uint8Array(DAYS).fill(1),
      publishedAt: new Float64Array(DAYS),
      corrections: new Int32Array(DAYS),
    };
  });
}

const decimals4 = (value: number): string => value.toFixed(4);

const days = Array.from({ length: DAYS }, (_, day) => day);
const usd = days.map((day) => decimals4(1.1 + 0.05 * Math.sin(day / 30)));
const cny = days.map((day) => decimals4(7.7 + 0.3 * Math.cos(day / 50)));
const RATES: RateTable = {
  source: 'bench',
  kind: 'published',
  base: { id: 1, iso: 'EUR' },
  currencies: new Map([
    [2, currencyRates('USD', days.join(','), usd.join(','))],
    [3, currencyRates('CNY', days.join(','), cny.join(','))],
  ]),
};

const tonne = { id: 1, uuid: 'tonne', ...UNITS.tonne };
const pound = { id: 2, uuid: 'pound', ...UNITS.pound };
const { conversion } = outcomeOf(
  { payable: false, currency: 3, unit: tonne },
  { currency: 2, unit: pound },
  RATES,
);

const prices = pricesOf();

const ours = (): PointColumns[] =>
  prices.map((columns) => convertedPoints(observe(columns, conversion), BY_RULE));

/** The cost of exact arithmetic for every value. */
function always(): PointColumns[] {
  return prices.map((columns) => {
    const observations = observe(columns, conversion);
    const column = (name: ValueName) => {
      const rounded = new RoundedColumn(columns.length, BY_RULE);
      for (let index = 0; index < columns.length; index += 1) {
        const value = exactValue(observations, name, index);
        if (value) rounded.roundExactly(index, value);
      }
      return rounded;
    };
    const points = { low: column('low'), mid: column('mid'), high: column('high') };
    return { ...columns, ...points, fx: null, vat: null, lacking: 'no-rate', periods: null };
  });
}

/** The same with a library; factors are computed once per day, with the price's decimals. */
function withPeer(peer: Peer): Big[] {
  const multiply = usd.map((rate) => peer.of(pound.factor).times(peer.of(rate)));
  const divide = cny.map((rate) => peer.of(tonne.factor).times(peer.of(rate)).times(peer.of(10)));
  const answers: Big[] = [];
  for (const columns of prices) {
    for (const name of VALUE_NAMES) {
      for (let index = 0; index < columns.length; index += 1) {
        const stored = peer.of(columns[name][index] as number);
        const value = stored.times(multiply[index] as Big).div(divide[index] as Big);
        const small = value.abs().lt(1000);
        answers.push(small ? peer.toSixDigits(value) : peer.toTwoDecimals(value));
      }
    }
  }
  return answers;
}

const textOf = (points: PointColumns[]): string[] =>
  points.flatMap((each) =>
    VALUE_NAMES.flatMap((name) =>
      Array.from(each[name].scaled, (scaled, index) =>
        decimalText({ digits: BigInt(scaled), scale: each[name].scale[index] as number }),
      ),
    ),
  );

const rounds = Number(process.argv[2] ?? 5);
const contenders = [
  { name: 'this service', run: () => ours(), texts: () => textOf(ours()) },
  { name: 'BigInt for every value', run: () => always(), texts: () => textOf(always()) },
  ...(await peers()).map((peer) => ({
    name: peer.name,
    run: () => withPeer(peer),
    texts: () => withPeer(peer).map((each) => each.toFixed()),
  })),
].map((each) => ({ ...each, times: [] as number[] }));

const exact = textOf(always());
// Also warms up each contender before the measurement.
const wrong = contenders.map(
  (each) => each.texts().filter((text, index) => text !== exact[index]).length,
);
for (let round = 0; round < rounds; round += 1) {
  for (const each of contenders) {
    const start = performance.now();
    each.run();
    each.times.push(performance.now() - start);
  }
}

console.log(`${VALUES.toLocaleString('en')} values, best of ${rounds} rounds in turns`);
const best = (times: readonly number[]): number => Math.min(...times);
const own = best(contenders[0]?.times ?? []);
for (const [index, each] of contenders.entries()) {
  const milliseconds = best(each.times);
  const perValue = ((milliseconds * 1e6) / VALUES).toFixed(1).padStart(8);
  const perSecond = (VALUES / milliseconds / 1000).toFixed(2).padStart(8);
  const ratio = (milliseconds / own).toFixed(1).padStart(6);
  const speed = `${perValue} ns a value ${perSecond} million a second`;
  console.log(`${each.name.padEnd(24)}${speed} ${ratio} × ${wrong[index]} wrong`);
}
