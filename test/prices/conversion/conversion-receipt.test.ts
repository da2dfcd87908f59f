import t from 'tap';
import { expected } from '../../conversion/oracle.ts';
import {
  seededDatabase,
  type TestDatabase,
  testDatabase,
} from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { commit } from '../../support/prices/sample-writes.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';

/** The parts of a record that recomputation needs; numbers are the text that was sent. */
interface SentRecord {
  readonly code: string;
  readonly currency: { readonly iso: string } | null;
  readonly unitOfMeasure: { readonly name: string };
  readonly conversion?: Receipt;
  readonly series: readonly Point[];
}

interface Receipt {
  readonly status: string;
  readonly reason: string | null;
  readonly from: CurrencyAndUnit;
  readonly to: CurrencyAndUnit;
  readonly unitFactor: { readonly multiply: string; readonly divide: string } | null;
  readonly source: string | null;
  readonly rounding: string | null;
}

interface CurrencyAndUnit {
  readonly currency: string | null;
  readonly unitOfMeasure: string;
}

interface Point {
  readonly date: string;
  readonly low: string | null;
  readonly mid: string | null;
  readonly high: string | null;
  readonly fx?: { date: string; base: string; from: string; to: string };
}

async function recordsOf(service: Service, slug: string, body: object): Promise<SentRecord[]> {
  const answer = await service.app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    headers: { 'x-api-key': service.key },
    payload: body,
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return parseExact(answer.body).data;
}

/** By source and currency: the rate of each date, as text. */
type PublishedRates = ReadonlyMap<string, ReadonlyMap<string, string>>;

async function publishedIn({ pool }: TestDatabase): Promise<PublishedRates> {
  const { rows } = await pool.query(
    `select source || ' ' || iso as key, date::text, rate::text from fx_rate
      join currency on currency.id = currency_id`,
  );
  const byKey = Map.groupBy(rows, (row) => row.key as string);
  return new Map(
    [...byKey].map(([key, list]) => [key, new Map(list.map((row) => [row.date, row.rate]))]),
  );
}

const DAY_MS = 86_400_000;
const dayBefore = (date: string, days: number): string =>
  new Date(Date.parse(date) - days * DAY_MS).toISOString().slice(0, 10);

/** The rates that a point must show, looked up by the rule; undefined where there is none. */
function ratesFor(published: PublishedRates, { source, from, to }: Receipt, date: string) {
  const leg = (iso: string | null, day: string) =>
    iso === 'EUR' ? '1' : published.get(`${source} ${iso}`)?.get(day);
  for (let back = 0; back <= 7; back += 1) {
    const day = dayBefore(date, back);
    const [one, other] = [leg(from.currency, day), leg(to.currency, day)];
    if (one && other) return { date: day, base: 'EUR', from: one, to: other };
  }
  return undefined;
}

const decimalsOf = ({ rounding }: Receipt): number | null => {
  const found = /^half-even, (\d+) decimals$/.exec(rounding ?? '');
  return found ? Number(found[1]) : null;
};

/** Recomputes every figure of a converted record from its receipt; returns how many there were. */
function recompute(record: SentRecord, native: SentRecord, published: PublishedRates): number {
  const { code, conversion, series } = record;
  if (!conversion) throw new Error(`${code} has no receipt`);
  const { unitFactor: unit, from, to } = conversion;
  const wrong = (what: string): never => {
    throw new Error(`${code} ${what} ${JSON.stringify(conversion)}`);
  };
  if (!unit || record.currency?.iso !== to.currency) wrong('currency or unit');
  if (native.currency?.iso !== from.currency) wrong('currency before');
  if (series.length !== native.series.length) wrong('points');
  let figures = 0;
  for (const [index, point] of series.entries()) {
    const stored = native.series[index];
    const crosses = from.currency !== to.currency;
    const fx = crosses ? ratesFor(published, conversion, point.date) : undefined;
    if (JSON.stringify(point.fx) !== JSON.stringify(fx)) wrong(`rates of ${point.date}`);
    const hasRate = !crosses || fx !== undefined;
    for (const name of ['low', 'mid', 'high'] as const) {
      const amount = hasRate ? (stored?.[name] ?? null) : null;
      const right =
        amount &&
        expected(
          [amount, unit?.multiply ?? '', fx?.to ?? '1'],
          [unit?.divide ?? '', fx?.from ?? '1'],
          decimalsOf(conversion),
        );
      if (point[name] !== right) wrong(`${point.date} ${name}: ${point[name]}, not ${right}`);
      figures += 1;
    }
    const order = [point.low, point.mid, point.high].filter((each) => each !== null).map(Number);
    if (order.some((each, at) => each > (order[at + 1] ?? each))) wrong(`${point.date} order`);
  }
  return figures;
}

/** Requests a conversion of all markets and recomputes every figure; counts records by status. */
async function check(service: Service, database: TestDatabase, filters: object, target: object) {
  const published = await publishedIn(database);
  const counts: { [status: string]: number } = { figures: 0 };
  for (const { slug } of SPECIFIED) {
    const options = { includeSeries: true };
    const native = await recordsOf(service, slug, { filters, options });
    const body = { filters, options: { ...options, ...target } };
    const records = await recordsOf(service, slug, body);
    for (const [index, record] of records.entries()) {
      const status = record.conversion?.status ?? 'none';
      counts[status] = (counts[status] ?? 0) + 1;
      const plain = native[index];
      if (!plain || plain.code !== record.code) throw new Error(`${record.code} is out of order`);
      if (status === 'converted' || status === 'partial') {
        counts['figures'] = (counts['figures'] ?? 0) + recompute(record, plain, published);
      } else if (JSON.stringify(record.series) !== JSON.stringify(plain.series)) {
        throw new Error(`${record.code} is ${status}, and changed`);
      }
    }
  }
  return counts as { readonly [status: string]: number };
}

t.test('every figure of every market can be recomputed from its receipt', async (t) => {
  const database = await seededDatabase(t);
  const service = await serviceOn(t, database);
  const all = await check(service, database, {}, { currency: 'EUR', unitOfMeasure: 'lb' });
  t.match(all, { unchanged: undefined, none: undefined });
  t.ok((all['figures'] ?? 0) > 250_000, JSON.stringify(all));
  t.ok((all['refused'] ?? 0) > 10 && (all['not-applicable'] ?? 0) > 10);
  const late = { dateFrom: '2025-10-01' };
  for (const target of [
    { currency: 'CNY', unitOfMeasure: 'kilogram' },
    { currency: 'JPY', unitOfMeasure: 'troy ounce', decimals: 3 },
    { currency: 'KRW', decimals: 10 },
    { currency: 'USD', unitOfMeasure: 'kWh' },
    { unitOfMeasure: 'short ton' },
    { unitOfMeasure: 'ltu', decimals: 0 },
  ]) {
    const counts = await check(service, database, late, target);
    t.ok((counts['figures'] ?? 0) > 500, `${JSON.stringify(target)} ${JSON.stringify(counts)}`);
  }
});

t.test('real rates replace the sample for every point, and neither fills in', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, (client) =>
    client.query(`insert into fx_rate (source, currency_id, date, rate)
      select 'ECB', currency_id, date, trim_scale(rate * 1.01) from fx_rate
      where source = 'SAMPLE' and date >= '2026-01-01' and extract(day from date) < 15`),
  );
  const service = await serviceOn(t, database);
  const counts = await check(service, database, { dateFrom: '2025-12-01' }, { currency: 'EUR' });
  t.ok((counts['partial'] ?? 0) > 50, JSON.stringify(counts));
  const records = await recordsOf(service, 'copper', { options: { currency: 'EUR' } });
  const sources = records.map((each) => each.conversion?.source).filter(Boolean);
  t.same([...new Set(sources)], ['ECB']);
});
