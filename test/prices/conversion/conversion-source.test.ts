import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { expected } from '../../conversion/oracle.ts';
import { randomOf } from '../../conversion/support.ts';
import { loadFile, loadText } from '../../ingest/support/loading.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseExact } from '../../support/prices/oracle.ts';

const COUNTRIES = {
  Euro: 'EUR',
  China: 'CNY',
  Japan: 'JPY',
  'United Kingdom': 'GBP',
  India: 'INR',
};
const LEVELS = [0.9, 7.1, 155, 0.77, 88];
const FIRST = '2026-03-02';
const LAST = '2026-05-29';
const DAY_MS = 86_400_000;
const dayAfter = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);

type PublishedRates = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** A daily table of the H.10 with some empty cells, and its rates by currency and day. */
function h10(): { readonly text: string; readonly published: PublishedRates } {
  const random = randomOf(10);
  const published = new Map(Object.values(COUNTRIES).map((iso) => [iso, new Map()]));
  const lines = [`Date,${Object.keys(COUNTRIES).join()}`];
  for (let day = FIRST; day <= LAST; day = dayAfter(day, 1)) {
    if ([0, 6].includes(new Date(day).getUTCDay())) continue;
    const cells = LEVELS.map((level) =>
      random() < 0.15 ? '' : (level * (0.98 + random() / 25)).toFixed(4),
    );
    for (const [at, iso] of Object.values(COUNTRIES).entries()) {
      if (cells[at]) published.get(iso)?.set(day, cells[at].replace(/\.?0+$/, ''));
    }
    lines.push([day, ...cells].join());
  }
  return { text: `${lines.join('\n')}\n`, published };
}

const { text, published } = h10();
let database: TestDatabase;
let service: Service;
t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  const report = await loadText(t, database.client, 'fed', text);
  if (report.status !== 'applied') throw new Error(JSON.stringify(report.errors));
  service = await serviceOn(t, database, { FX_SOURCE: 'FED' });
});

/** The rates that a point must show by the rule; undefined where there is none. */
function ratesFor(from: string, to: string, date: string) {
  const leg = (iso: string, day: string) => (iso === 'USD' ? '1' : published.get(iso)?.get(day));
  for (let back = 0; back <= 7; back += 1) {
    const day = dayAfter(date, -back);
    const [one, other] = [leg(from, day), leg(to, day)];
    if (one && other) return { date: day, base: 'USD', from: one, to: other };
  }
  return undefined;
}

const FILTERS = { dateFrom: '2026-02-20', dateTo: '2026-06-10' };

async function records(slug: string, options: object) {
  const { text } = await service.post(slug, {
    filters: FILTERS,
    options: { includeSeries: true, ...options },
  });
  return parseExact(text).data;
}

t.test('a source with another base converts exactly through its own base', async (t) => {
  const counts = { figures: 0, crosses: 0, without: 0 };
  for (const { slug } of MARKETS) {
    const native = await records(slug, {});
    for (const currency of ['EUR', 'USD', 'JPY']) {
      const converted = await records(slug, { currency });
      for (const [at, { conversion, series }] of converted.entries()) {
        const from = native[at].currency?.iso;
        if (conversion.status !== 'converted' && conversion.status !== 'partial') continue;
        if (conversion.source !== 'FED') throw new Error(`the source is ${conversion.source}`);
        for (const [index, point] of series.entries()) {
          const fx = ratesFor(from, currency, point.date);
          if (JSON.stringify(point.fx) !== JSON.stringify(fx)) {
            t.strictSame(point.fx, fx, `${native[at].code} ${point.date}`);
          }
          const { mid } = native[at].series[index];
          const right = fx ? expected([mid, fx.to], [fx.from], null) : null;
          if (point.mid !== right) t.equal(point.mid, right, `${native[at].code} ${point.date}`);
          counts.figures += 1;
          if (!fx) counts.without += 1;
          else if (from !== 'USD' && currency !== 'USD') counts.crosses += 1;
        }
      }
    }
  }
  t.ok(
    counts.figures > 3_000 && counts.crosses > 300 && counts.without > 100,
    `${Object.values(counts)}`,
  );
});

t.test('the rates themselves are those of the source, for one dollar', async (t) => {
  const get = (query: string) =>
    service.request({ method: 'GET', url: `/v3/reference/rates?${query}` });
  const { json } = await get('base=USD&quote=CNY');
  t.match(json.$metadata, { source: 'FED', sourceBase: 'USD', base: 'USD', quote: 'CNY' });
  t.strictSame(
    json.data.map((each: { date: string; legs: object }) => [each.date, each.legs]),
    [...(published.get('CNY') ?? [])].map(([date, quote]) => [date, { base: '1', quote }]),
  );
  const cross = await get('base=EUR&quote=CNY');
  t.ok(cross.json.data.length > 30);
  for (const { rate, legs } of cross.json.data) {
    t.equal(rate, expected([legs.quote], [legs.base], 10));
  }
  const currencies = await service.request({ method: 'GET', url: '/v3/reference/currencies' });
  t.equal(currencies.json.$metadata.source, 'FED');
});

t.test('a source that is loaded and not configured serves no conversion', async (t) => {
  const usual = await serviceOn(t, database);
  const { json } = await usual.post('nickel', {
    filters: { codes: ['CP-NI-0001'], ...FILTERS },
    options: { includeSeries: true, currency: 'EUR' },
  });
  t.match(json.data[0].conversion, { status: 'refused', reason: 'no-rate', source: null });
});

t.test('each service uses its own source, over one database', async (t) => {
  const both = await testDatabase(t, { seeded: true });
  await loadText(t, both.client, 'fed', text);
  const ecb = new URL('../../fixtures/ecb-hist.csv', import.meta.url).pathname;
  t.equal((await loadFile(both.client, 'ecb', ecb)).status, 'applied');
  for (const FX_SOURCE of ['ECB', 'FED']) {
    const { request } = await serviceOn(t, both, { FX_SOURCE });
    const { json } = await request({
      method: 'GET',
      url: '/v3/reference/rates?base=USD&quote=EUR',
    });
    const sourceBase = FX_SOURCE === 'ECB' ? 'EUR' : 'USD';
    t.match(json.$metadata, { source: FX_SOURCE, sourceBase });
    t.ok(json.data.length > 0, FX_SOURCE);
  }
});
