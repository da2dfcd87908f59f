import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { MARKETS, type MarketSlug } from '../src/catalog/markets.ts';

/** The market of the workloads. */
export const MARKET: MarketSlug = 'nickel';
/** Prices of that market, in a table of any size. */
export const MARKET_PRICES = 250;
export const FIRST_DAY = '2015-01-01';
export const LAST_DAY = '2024-12-31';
/** The region of twelve prices of the market. */
export const SMALL_REGION = 'Twelve';

const DAY_MS = 86_400_000;

/** Monday to Friday of ten years. */
function businessDays(): string[] {
  const days: string[] = [];
  for (let at = Date.parse(FIRST_DAY); at <= Date.parse(LAST_DAY); at += DAY_MS) {
    const weekday = new Date(at).getUTCDay();
    if (weekday !== 0 && weekday !== 6) days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}
export const DAYS: readonly string[] = businessDays();

interface BenchPrice {
  readonly code: string;
  readonly market: MarketSlug;
}

const codeOf = (index: number): string => `BENCH-${String(index).padStart(6, '0')}`;

/** Codes of the workloads' market, in order. */
export const MARKET_CODES: readonly string[] = Array.from({ length: MARKET_PRICES }, (_, index) =>
  codeOf(index),
);

/** The prices of a table of about this many points: the workloads' market first. */
function pricesFor(points: number): BenchPrice[] {
  const others = MARKETS.map(({ slug }) => slug).filter((slug) => slug !== MARKET);
  const count = Math.max(Math.round(points / DAYS.length), MARKET_PRICES + others.length);
  return Array.from({ length: count }, (_, index) => {
    const other = others[(index - MARKET_PRICES) % others.length] ?? MARKET;
    return { code: codeOf(index), market: index < MARKET_PRICES ? MARKET : other };
  });
}

/** The exact number of points of such a table. */
export const pointsOf = (points: number): number => pricesFor(points).length * DAYS.length;

function* descriptions(prices: readonly BenchPrice[]): Generator<string> {
  for (const market of MARKETS) {
    const product = { market: market.slug, name: 'Benchmark', alias: 'B', chemicalCode: 'B' };
    yield `${JSON.stringify({ product: { ...product, isSustainable: false } })}\n`;
  }
  yield `${JSON.stringify({ value: { dimension: 'region', name: SMALL_REGION } })}\n`;
  for (const [index, { code, market }] of prices.entries()) {
    const price = {
      code,
      market,
      name: `Price ${code}, delivered, weekly average of the working days`,
      shortName: code,
      product: 'Benchmark',
      priceCategory: 'Spot',
      priceType: 'Price',
      frequency: 'Daily',
      currency: 'USD',
      unitOfMeasure: 't',
      assessmentLaunchedAt: FIRST_DAY,
      specification: [
        { name: 'Quality', value: 'As described in the methodology of the benchmark' },
        { name: 'Quantity', value: 'Min 20 tonnes' },
        { name: 'Timing', value: 'Within 30 days' },
      ],
      ...(market === MARKET
        ? { region: index % 20 === 7 && index < 240 ? SMALL_REGION : 'Asia' }
        : {}),
    };
    yield `${JSON.stringify({ price })}\n`;
  }
}

const money = (cents: number): string =>
  `${Math.floor(cents / 100)}.${String(100 + (cents % 100)).slice(1)}`;

/** A series: a wave over years with daily noise, in whole cents, so that its text is exact. */
function* series(
  prices: readonly BenchPrice[],
  onPrice: (done: number, all: number) => void,
): Generator<string> {
  yield 'code,date,low,mid,high,publishedAt\n';
  for (const [index, { code }] of prices.entries()) {
    let text = '';
    const base = 1_500_000 + (index % 97) * 10_000;
    for (const [at, day] of DAYS.entries()) {
      const wave = 300_000 * Math.sin((at + index * 13) / 180);
      const mid = base + Math.round(wave) + ((at * 7919 + index * 104_729) % 2_000);
      const values = [mid - 12_500, mid, mid + 12_500].map(money).join(',');
      text += `${code},${day},${values},${day}T16:00:00Z\n`;
    }
    onPrice(index + 1, prices.length);
    yield text;
  }
}

/** Lines per description file: a load describes at most 20,000 prices. */
const DESCRIPTIONS = 15_000;

/** Days after the data set, for the values that are loaded and then corrected. */
const LATER_DAYS = 260;

/** The later values of one price; `cents` is added to each of them. */
function laterValues(code: string, cents: number): string {
  const first = Date.parse(LAST_DAY) + DAY_MS;
  return Array.from({ length: LATER_DAYS }, (_, at) => {
    const day = new Date(first + at * DAY_MS).toISOString().slice(0, 10);
    const mid = 1_500_000 + ((at * 7919) % 2_000) + cents;
    const values = [mid - 12_500, mid, mid + 12_500].map(money).join(',');
    return `${code},${day},${values},${day}T16:00:00Z\n`;
  }).join('');
}

/** Number of values in a file of later values. */
export const LATER_VALUES = MARKET_PRICES * LATER_DAYS;

const othersFor = (points: number): readonly BenchPrice[] =>
  pricesFor(points).filter(({ market }) => market !== MARKET);

/** The number of rounds that `writeLaterValues` has prices for; the only one may have fewer. */
export const laterRounds = (points: number): number =>
  Math.max(1, Math.floor(othersFor(points).length / MARKET_PRICES));

/**
 * Writes values of 250 prices of other markets, on days after the data set. No workload requests
 * them.
 * @param round its prices are those of no other round
 * @param cents what a correction adds to each value; 0 for the first publication
 */
export function writeLaterValues(
  file: string,
  points: number,
  round: number,
  cents: number,
): Promise<void> {
  const from = round * MARKET_PRICES;
  const prices = othersFor(points).slice(from, from + MARKET_PRICES);
  const rows = prices.map(({ code }) => laterValues(code, cents));
  return writeFile(file, `code,date,low,mid,high,publishedAt\n${rows.join('')}`);
}

/** Writes the descriptions of the prices into a folder, as NDJSON; returns the files. */
export async function writeDescriptions(folder: string, points: number): Promise<string[]> {
  const lines = [...descriptions(pricesFor(points))];
  const files: string[] = [];
  for (let at = 0; at < lines.length; at += DESCRIPTIONS) {
    const file = join(folder, `prices-${files.length + 1}.ndjson`);
    await writeFile(file, lines.slice(at, at + DESCRIPTIONS).join(''));
    files.push(file);
  }
  return files;
}

/** Writes the series, as CSV, price by price. */
export const writeSeries = (
  file: string,
  points: number,
  onPrice: (done: number, all: number) => void,
): Promise<void> =>
  pipeline(Readable.from(series(pricesFor(points), onPrice)), createWriteStream(file));

/** The market of an answer of a million points, and its prices. */
export const MILLION_MARKET: MarketSlug = 'copper';
const MILLION: readonly BenchPrice[] = Array.from({ length: 384 }, (_, index) => ({
  code: `MILLION-${String(index).padStart(3, '0')}`,
  market: MILLION_MARKET,
}));

/** Writes prices with their points; returns the file of the prices and that of their series. */
async function writePrices(
  folder: string,
  prices: readonly BenchPrice[],
): Promise<[string, string]> {
  const files: [string, string] = [join(folder, 'prices.ndjson'), join(folder, 'series.csv')];
  await writeFile(files[0], [...descriptions(prices)].join(''));
  const points = Readable.from(series(prices, () => {}));
  await pipeline(points, createWriteStream(files[1]));
  return files;
}

/** Writes a million points of one market; returns the file of its prices and that of its series. */
export const writeMillion = (folder: string): Promise<[string, string]> =>
  writePrices(folder, MILLION);

/** The market of the largest wide table, of 766 prices × 2,609 days. */
export const WIDEST_MARKET: MarketSlug = 'lithium';
const WIDEST: readonly BenchPrice[] = Array.from({ length: 766 }, (_, index) => ({
  code: `WIDEST-${String(index).padStart(3, '0')}`,
  market: WIDEST_MARKET,
}));

/** Writes the points of that market, like `writeMillion`. */
export const writeWidest = (folder: string): Promise<[string, string]> =>
  writePrices(folder, WIDEST);
