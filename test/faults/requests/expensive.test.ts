import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { filtersOf } from '../../../src/contract/schemas/market.ts';
import { testDatabase } from '../../support/database/database.ts';
import { fillLarge, LARGE } from '../../support/database/large-market.ts';
import { counted, samplesOf, WITH_METRICS } from '../../support/http/metrics.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { failedOf, within } from '../../support/process/figures.ts';
import {
  agentOf,
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  send,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

/** Concurrent requests of each kind: the default limit of a key. */
const AT_ONCE = byLength(3, 10);

const SIZE = byLength(
  { prices: 1_000, values: 100, points: 2, rateDays: 500 },
  { prices: 20_000, values: 1_000, points: 5, rateDays: 10_000 },
);

const path = `/v3/prices/${LARGE.slug}`;

/** A counter that makes requests distinct, so that no cache serves them. */
let requests = 0;
const another = (): number => {
  requests += 1;
  return requests;
};

const times = <T>(count: number, of: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => of(index));

const post = (
  filters: object,
  options: object,
  headers: Record<string, string> = {},
): HttpRequest => ({
  path,
  body: JSON.stringify({ filters, options }),
  headers: { 'accept-encoding': 'identity', ...headers },
});

const get = (address: string): HttpRequest => ({
  path: address,
  headers: { 'accept-encoding': 'identity' },
});

function unknownCodes(): string[] {
  const number = another();
  return times(500, (n) => `CP-LX-${number}${String(n * 37).padStart(5, '0')}`);
}

/** The number of values of every filter that fits a body of 128 KiB. */
function unknownNames(): object {
  const number = another();
  const value = (name: string, n: number): string =>
    `${name} ${number} ${n} `.padEnd(128, 'metre of sulphate aluminium ');
  return Object.fromEntries(
    filtersOf(LARGE).map((name) => [name, times(90, (n) => value(name, n))]),
  );
}

/** A request for all prices with a unique date range. */
const all = (): object => ({
  dateFrom: new Date(Date.UTC(1990, 0, another())).toISOString().slice(0, 10),
});

/** The time of the first revision, in milliseconds since 1970; the names changed later. */
let filledAt = 0;

/** A unique past instant. */
const pastInstant = (): string => new Date(filledAt + (another() % 50)).toISOString();

const SERIES = { includeSeries: true, includeSummary: true };
const CONVERTED = { ...SERIES, currency: 'CNY', unitOfMeasure: 'lb' };
const CSV = { accept: 'text/csv' };
const NDJSON = { accept: 'application/x-ndjson' };
const AVERAGES = { ...CONVERTED, aggregate: { period: 'month', method: 'average' } };

/** The most expensive valid request of each kind, and requests with the most violations. */
const KINDS: readonly (() => HttpRequest)[] = [
  () => post({ codes: unknownCodes() }, {}),
  () => post({ codes: unknownCodes() }, { strict: true }),
  () => post(unknownNames(), {}),
  () => post(unknownNames(), { strict: true }),
  () => get(`${path}?${times(380, (n) => `codes=CP-LX-${another()}${n}`).join('&')}`),
  () => get(`${path}?${times(1_800, (n) => `${n.toString(36)}=`).join('&')}`),
  () => post(Object.fromEntries(times(9_000, (n) => [`r${n}`, 1])), {}),
  () => post(all(), {}),
  () => post(all(), {}, CSV),
  () => post(all(), { asOf: pastInstant() }),
  () => post(all(), SERIES, { 'accept-encoding': 'gzip' }),
  () => post(all(), SERIES, { 'accept-encoding': 'zstd' }),
  () => post(all(), SERIES, NDJSON),
  () => post(all(), CONVERTED),
  () => post(all(), CONVERTED, CSV),
  () => post(all(), AVERAGES),
  () => post(all(), { ...CONVERTED, limit: 10_000 }),
  () => get(`${path}/filters`),
  () => get('/v3/prices'),
  () => get('/v3/reference/rates?base=CNY&quote=USD'),
  () => get('/v3/reference/currencies'),
  () => get('/v3/changes?limit=5000'),
];

/** The longest event-loop delay since the last call, in milliseconds. */
async function heldMs(service: ServiceProcess): Promise<number> {
  const samples = await samplesOf(service);
  const held = samples.find(({ name }) => name === 'nodejs_eventloop_lag_max_seconds');
  return 1_000 * (held?.value ?? Number.NaN);
}

/** Another client that requests one price in a loop. */
function somebodyElse(test: typeof t, service: ServiceProcess) {
  const agent = agentOf(test, 1);
  const answers: HttpAnswer[] = [];
  let isOver = false;
  const asking = (async (): Promise<void> => {
    while (!isOver) {
      answers.push(await send(agent, service, post({ codes: ['CP-LI-00001'] }, SERIES)));
      await pause(10);
    }
  })();
  return async (): Promise<readonly HttpAnswer[]> => {
    isOver = true;
    await asking;
    return answers;
  };
}

fault(
  'F58',
  'the most expensive valid request of each kind, ten at once, in a market of 20,000 prices',
  'the event loop is blocked for ≤ 100 ms; no other client is rejected',
  async (t) => {
    const database = await testDatabase(t);
    await fillLarge(database, SIZE);
    const { rows } = await database.pool.query(
      `select ceil(extract(epoch from committed_at) * 1000)::float as at
        from revision where number = 1`,
    );
    filledAt = rows[0].at;
    const service = await startServiceProcess(t, database, WITH_METRICS);
    const agent = agentOf(t, AT_ONCE);
    const isReady = async () => (await send(agent, service, get('/ready'))).status === 200;
    await until('the service is ready', isReady);
    // The price book loads a market once; past instants always need the database.
    await until('the market is in the price book', async () => {
      // A repeated request would be answered from the kept answers, which count as well.
      await send(agent, service, post(all(), {}));
      return (await counted(service, { name: 'prices_book_answers_total', labels: {} })) > 0;
    });
    const end = somebodyElse(t, service);
    const held: number[] = [];
    const failed: string[] = [];
    for (const kind of KINDS) {
      await heldMs(service);
      const answers = await Promise.all(times(AT_ONCE, () => send(agent, service, kind())));
      held.push(await heldMs(service));
      const isFailure = ({ status }: HttpAnswer) => status === 0 || status === 500;
      failed.push(...answers.filter(isFailure).map(({ text }) => text.slice(0, 200)));
    }
    const others = await end();
    t.same(failed, [], 'each of them is answered or refused');
    t.comment(JSON.stringify(held.map(Math.round)));
    const refused = others.filter(({ status }) => status !== 200);
    t.same(refused.map(codeOf), []);
    return {
      kinds: KINDS.length,
      'requests of other clients': others.length,
      'rejected of them': failedOf(refused.length),
      'blocked longest by kind': 1 + held.indexOf(Math.max(...held)),
      'event loop blocked': within(Math.max(...held), 100),
    };
  },
);
