import t from 'tap';
import { FORMATS, type Format } from '../../../src/contract/schemas/formats.ts';
import { testDatabase } from '../../support/database/database.ts';
import { fillLarge, LARGE } from '../../support/database/large-market.ts';
import { counted, samplesOf, WITH_METRICS } from '../../support/http/metrics.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { agentOf, type HttpRequest, send } from '../../support/process/load.ts';

const PRICES = 20_000;

/** Longest pause of the event loop, with room for a busy machine. */
const PAUSE_MS_MAX = 500;

const path = `/v3/prices/${LARGE.slug}`;

interface Kind {
  readonly title: string;
  readonly format: Format;
  readonly options: object;
}

const SERIES = { includeSeries: true };
const CONVERTED = { ...SERIES, includeSummary: true, currency: 'CNY', unitOfMeasure: 'lb' };
const SHORT = { ...SERIES, columns: 'short' };
const WIDE = { ...SERIES, layout: 'wide' };

/** Each format, with and without what makes its records long. */
const KINDS: readonly Kind[] = [
  ...(Object.keys(FORMATS) as Format[]).map((format) => ({
    title: 'without series',
    format,
    options: {},
  })),
  { title: 'converted', format: 'json', options: CONVERTED },
  { title: 'converted', format: 'csv', options: CONVERTED },
  { title: 'converted', format: 'arrow', options: CONVERTED },
  { title: 'series', format: 'parquet', options: SERIES },
  { title: 'short', format: 'parquet', options: SHORT },
  { title: 'series', format: 'xlsx', options: SERIES },
  { title: 'short', format: 'rows', options: SHORT },
  { title: 'wide', format: 'csv', options: WIDE },
  { title: 'wide', format: 'rows', options: { ...WIDE, currency: 'CNY' } },
];

/** A number of which each request has another, so that no answer comes from a cache. */
let requests = 0;

const asked = ({ format, options }: Kind, coding: string, asOf?: string): HttpRequest => {
  requests += 1;
  const dateFrom = new Date(Date.UTC(1990, 0, requests)).toISOString().slice(0, 10);
  return {
    path,
    body: JSON.stringify({
      filters: { dateFrom },
      options: { ...options, ...(asOf ? { asOf } : {}) },
    }),
    headers: { accept: FORMATS[format].media, 'accept-encoding': coding },
  };
};

/** The longest pause of the event loop since the last call, in milliseconds. */
async function longestPause(service: ServiceProcess): Promise<number> {
  const samples = await samplesOf(service);
  const lag = samples.find(({ name }) => name === 'nodejs_eventloop_lag_max_seconds');
  return 1_000 * (lag?.value ?? Number.NaN);
}

t.test('no answer of 20,000 prices stops the event loop, whatever its format', async (t) => {
  const database = await testDatabase(t);
  await fillLarge(database, { prices: PRICES, values: 100, points: 5, rateDays: 500 });
  const { rows } = await database.pool.query(
    `select ceil(extract(epoch from committed_at) * 1000)::float as at
      from revision where number = 1`,
  );
  // The price book has the second revision only.
  const asOf = new Date(rows[0].at).toISOString();
  const service = await startServiceProcess(t, database, {
    ...WITH_METRICS,
    REQUEST_DEADLINE_MS: '60000',
    DATABASE_STATEMENT_TIMEOUT_MS: '60000',
  });
  const agent = agentOf(t, 4);
  await until('the market is in the price book', async () => {
    await send(agent, service, { path, body: '{}' });
    return (await counted(service, { name: 'prices_book_answers_total', labels: {} })) > 0;
  });
  const pauseOf = async (ask: HttpRequest): Promise<number> => {
    await longestPause(service);
    const { status, text } = await send(agent, service, ask);
    t.equal(status, 200, status === 200 ? 'it is answered' : text);
    return longestPause(service);
  };
  const long: string[] = [];
  const check = async (title: string, ask: () => HttpRequest): Promise<void> => {
    let least = Number.POSITIVE_INFINITY;
    // A busy machine pauses a process for as long, but not each time.
    for (let tries = 0; tries < 3 && least > PAUSE_MS_MAX; tries += 1) {
      least = Math.min(least, await pauseOf(ask()));
    }
    t.comment(`${title}: ${Math.round(least)} ms`);
    if (least > PAUSE_MS_MAX) long.push(`${title}: ${Math.round(least)} ms`);
  };
  for (const kind of KINDS) {
    const title = `${kind.format}, ${kind.title}`;
    await check(title, () => asked(kind, 'identity'));
    if (kind.title !== 'without series') continue;
    await check(`${title}, gzip`, () => asked(kind, 'gzip'));
    await check(`${title}, from SQL`, () => asked(kind, 'identity', asOf));
  }
  await check('the values of filters', () => ({ path: `${path}/filters` }));
  await check('a search', () => ({ path: '/v3/search?q=sulphate' }));
  await check('a page of changes', () => ({ path: '/v3/changes?limit=5000' }));
  t.same(long, []);
});
