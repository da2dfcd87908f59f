import { marketOf } from '../../../src/catalog/markets.ts';
import { OPTION_NAMES } from '../../../src/contract/schemas/options.ts';
import { cursorText } from '../../../src/prices/plan/cursor.ts';
import { canonicalText, planOf } from '../../../src/prices/plan/plan.ts';
import { HS256, SECRET } from '../../support/auth/auth-app.ts';
import { goodClaims, secretToken } from '../../support/auth/tokens.ts';
import { seededDatabase } from '../../support/database/database.ts';
import { logSql } from '../../support/database/sql-log.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { SPECIFIED, type SpecifiedMarket } from '../../support/prices/specification.ts';
import { within } from '../../support/process/figures.ts';
import {
  type HttpAnswer,
  type HttpRequest,
  quantile,
  send,
  sendAll,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';
import { CANARY, INJECTIONS } from './injections.ts';

/** Tokens of an issuer with arbitrary claims. */
const TOKENS = {
  JWT_SECRET: SECRET,
  JWT_ISSUER: HS256.JWT_ISSUER,
  JWT_AUDIENCE: HS256.JWT_AUDIENCE,
};

type Place = (payload: string, market: SpecifiedMarket) => HttpRequest;

const body = (path: string, value: unknown): HttpRequest => ({ path, body: JSON.stringify(value) });
const pathOf = ({ slug }: SpecifiedMarket): string => `/v3/prices/${slug}`;
const query = (path: string, names: readonly string[], value: string): HttpRequest => ({
  path: `${path}?${names.map((name) => `${name}=${encodeURIComponent(value)}`).join('&')}`,
});

/** Every option but the cursor, which has places of its own. */
const OPTIONS = OPTION_NAMES.filter((name) => name !== 'cursor');
const WORDS = [...OPTIONS, 'dateFrom', 'dateTo', 'format'];

/** Encodes a payload for a header, which allows only Latin-1. */
const headerOf = (payload: string): string =>
  /^[ -~]*$/.test(payload) ? payload.trim() : encodeURIComponent(payload);

/** A request to a market with only the given credential. */
const authorized = (market: SpecifiedMarket, authorization: string): HttpRequest => ({
  path: pathOf(market),
  headers: { authorization },
});

/** A cursor forged by a client that knows its parts but not its checksum. */
const asPosition = (payload: string): string =>
  Buffer.from(JSON.stringify(['abcd.1', payload, 'AAAAAAAAAAAAAAAA'])).toString('base64url');

/** All text inputs of a request. */
const PLACES: readonly Place[] = [
  (payload, market) =>
    body(pathOf(market), {
      filters: Object.fromEntries(market.filters.map((name) => [name, [payload]])),
    }),
  (payload, market) =>
    body(pathOf(market), {
      filters: { products: [payload, 'x'], dateFrom: '2026-06-01' },
      options: { includeSeries: true, includeSummary: true },
    }),
  (payload, market) => body(pathOf(market), { filters: { codes: [payload] } }),
  (payload, market) =>
    body(pathOf(market), { filters: { dateFrom: payload, dateTo: `2026-06-01${payload}` } }),
  (payload, market) => body(pathOf(market), { options: { currency: payload } }),
  (payload, market) => body(pathOf(market), { options: { unitOfMeasure: payload } }),
  (payload, market) =>
    body(pathOf(market), {
      options: {
        ...Object.fromEntries(OPTIONS.map((name) => [name, payload])),
        aggregate: { period: payload, method: payload },
      },
    }),
  (payload, market) => body(pathOf(market), { filters: { [payload]: ['x'] }, [payload]: 1 }),
  (payload, market) => query(pathOf(market), market.filters, payload),
  (payload, market) => query(pathOf(market), WORDS, payload),
  (payload, market) => query(pathOf(market), ['codes'], payload),
  (payload) => query('/v3/reference/rates', ['base', 'quote', 'from', 'to', 'source'], payload),
  (payload) => query('/v3/search', ['q', 'limit', 'market'], payload),
  (payload) => query('/v3/changes', ['after', 'market', 'limit', 'wait'], payload),
  (payload) => query('/v3/changes', [encodeURIComponent(payload)], '1'),
  (payload) => ({ path: `/v3/prices/${encodeURIComponent(payload)}` }),
  (payload, market) => ({ path: `${pathOf(market)}/${encodeURIComponent(payload)}` }),
  (payload) => ({ path: '/v3/prices', headers: { 'x-api-key': headerOf(payload) } }),
  (payload) => ({ path: '/v3/me', headers: { 'x-api-key': `cps_live_${headerOf(payload)}` } }),
  (payload, market) => body(pathOf(market), { options: { limit: 1, cursor: payload } }),
  (payload, market) => body(pathOf(market), { options: { limit: 1, cursor: asPosition(payload) } }),
  (payload, market) => query(pathOf(market), ['limit=1&cursor'], payload),
  (payload, market) => authorized(market, headerOf(payload)),
  (payload, market) => authorized(market, `Bearer ${headerOf(payload)}`),
  (payload, market) =>
    authorized(market, `Bearer ${secretToken(goodClaims({ sub: payload, scope: payload }))}`),
  (payload, market) =>
    authorized(market, `Bearer ${secretToken(goodClaims(), { alg: 'HS256', kid: payload })}`),
  (payload, market) => ({
    path: pathOf(market),
    headers: {
      'x-request-id': headerOf(payload),
      accept: `application/json, ${headerOf(payload)}`,
      'if-none-match': `"${headerOf(payload)}"`,
      'user-agent': headerOf(payload),
      'x-forwarded-for': headerOf(payload),
      cookie: headerOf(payload),
    },
  }),
];

/** The inputs of each payload, so that all payloads and all inputs are covered. */
const PLACES_EACH = byLength(2, PLACES.length);

interface InjectedRequest {
  readonly ask: HttpRequest;
  readonly payload: string;
}

const ASKED: readonly InjectedRequest[] = INJECTIONS.flatMap((payload, at) =>
  Array.from({ length: PLACES_EACH }, (_, turn) => {
    const place = PLACES[(at * PLACES_EACH + turn) % PLACES.length] ?? (() => ({ path: '/' }));
    const market = SPECIFIED[at % SPECIFIED.length] ?? { slug: '', filters: [], ownFilters: [] };
    return { payload, ask: place(payload, market) };
  }),
);

/** The fault of an answer; null for none. */
function faultOf({ status, text }: HttpAnswer, { ask }: InjectedRequest): string | null {
  if (status === 0 || status >= 500) return `${status}`;
  if (status !== 200) return null;
  // A payload as filter value matches nothing; an unknown header has no effect.
  if (ask.headers !== undefined) return null;
  const { data } = JSON.parse(text) as { data?: unknown };
  return Array.isArray(data) && data.length === 0 ? null : 'the filter found something';
}

/** Requests for the next page with a payload as position and a valid checksum. */
async function walksOf(service: ServiceProcess): Promise<HttpRequest[]> {
  const options = { limit: 1 };
  const first = await send(false, service, body('/v3/prices/nickel', { options }));
  const { nextCursor } = JSON.parse(first.text).$metadata;
  const [revision] = JSON.parse(Buffer.from(String(nextCursor), 'base64url').toString());
  const market = marketOf('nickel');
  if (!market) throw new Error('there is a market');
  const request = canonicalText(planOf(market, () => [], { options }));
  return INJECTIONS.map((code) =>
    body('/v3/prices/nickel', {
      options: { ...options, cursor: cursorText(request, { revision, code }) },
    }),
  );
}

fault(
  'F25',
  'SQL injection',
  '≥ 500 payloads in every text of a request: 0 × 5xx, no match, 0 errors in PostgreSQL, no ' +
    'payload in a statement, no sleep',
  async (t) => {
    const database = await seededDatabase(t);
    const proxy = await tcpProxyTo(t, database.url);
    const sqlLog = logSql(proxy);
    // Without the price book each filter reaches a statement.
    const service = await startServiceProcess(
      t,
      { ...database, url: proxy.url },
      {
        PRICE_BOOK_BYTES: '0',
        ...TOKENS,
      },
    );
    const walked = await sendAll(t, service, await walksOf(service), 8);
    t.same([...new Set(walked.map(({ status }) => status))], [200], 'a place among the codes');
    const answers = await sendAll(
      t,
      service,
      ASKED.map(({ ask }) => ask),
      8,
    );
    const wrong = answers.flatMap((answer, at) => {
      const onRequest = ASKED[at] as InjectedRequest;
      const fault = faultOf(answer, onRequest);
      return fault
        ? [`${fault}: ${JSON.stringify(onRequest.ask)} ${answer.text.slice(0, 200)}`]
        : [];
    });
    t.ok(INJECTIONS.length >= 500);
    t.same(wrong, []);
    t.same(sqlLog.errors, [], 'PostgreSQL had nothing to complain about');
    t.same(
      [...sqlLog.texts].filter((text) => text.includes(CANARY)),
      [],
      'no statement was made of what was sent',
    );
    t.ok(sqlLog.count() > 0, 'statements were seen in the SQL log');
    const { rows } = await database.pool.query('select count(*)::int as prices from price');
    t.ok(rows[0].prices > 0, 'the data are still there');
    return {
      payloads: INJECTIONS.length,
      places: PLACES.length + 1,
      requests: answers.length + walked.length,
      wrong: wrong.length,
      'different statements': sqlLog.texts.size,
      longest: within(quantile([...answers, ...walked], 1), 5_000),
    };
  },
);
