import type { FastifyReply, FastifyRequest } from 'fastify';
import { insufficientScopes } from '../../auth/refusals.ts';
import type { Edition } from '../../book/edition.ts';
import type { Market, MarketSlug } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { marketsOpenTo, scopeOf } from '../../catalog/scopes.ts';
import { FORMATS } from '../../contract/schemas/formats.ts';
import type { NewestRevision } from '../../db/newest-revision.ts';
import { isAfter } from '../../db/revisions.ts';
import { brokenRules, type Problem, quoted } from '../../errors.ts';
import { MIN_REVISION_UNKNOWN } from '../../prices/answer/warnings.ts';
import { type CalculationAnswer, calculationAt } from '../../prices/calculation/answer.ts';
import type { CalculationData, OpenMarket } from '../../prices/calculation/data.ts';
import { codeMarkets } from '../../prices/calculation/markets.ts';
import { referencedPlans } from '../../prices/calculation/payables.ts';
import type { CalculationPlan, PriceInput } from '../../prices/calculation/plan.ts';
import {
  CALCULATION_FORMATS,
  type CalculationFormat,
  calculationText,
} from '../../prices/calculation/write.ts';
import { optionsOf } from '../../prices/plan/options.ts';
import type { Plan } from '../../prices/plan/plan.ts';
import type { Snapshot, SnapshotPlan } from '../../prices/snapshot.ts';
import { preferredType } from '../../std/negotiation.ts';
import { notAcceptable } from './accept.ts';
import { isUnknown, keptAnswer, sendKept } from './kept-answers.ts';
import { warningsHeaders } from './price-headers.ts';
import type { PriceStore } from './prices.ts';
import { cacheHeaders, type Payload, sendTagged } from './send.ts';

/** Reports a refusal for a missing scope, and returns it. */
type ReportMissingScope = (request: FastifyRequest, refusal: Problem) => Problem;

/**
 * Negotiates the format of a calculation by the Accept header.
 * @throws Problem `not_acceptable` that names the formats
 */
export function calculationFormatOf({ headers }: FastifyRequest): CalculationFormat {
  const offered = CALCULATION_FORMATS.map((name) => FORMATS[name].media);
  const media = preferredType(headers.accept, offered);
  const format = CALCULATION_FORMATS.find((name) => FORMATS[name].media === media);
  if (format === undefined) throw notAcceptable(offered);
  return format;
}

/** A request for a calculation. */
interface CalculationQuery {
  /** See `requestKey`. */
  readonly key: string;
  /** Returns the plan. @throws Problem for a request that breaks a rule */
  readonly makePlan: () => CalculationPlan;
}

/**
 * Answers a calculation at the newest or the requested revision. The answer to a repeated request
 * is kept until the next commit.
 */
export async function sendCalculation(
  request: FastifyRequest,
  reply: FastifyReply,
  store: PriceStore,
  { key, makePlan }: CalculationQuery,
  reportMissingScope: ReportMissingScope,
): Promise<FastifyReply> {
  const { work } = request.context;
  const readable = readableMarketsOf(request);
  const kept = await keptAnswer(request, store, {
    key,
    origin: { readableMarkets: () => readable },
  });
  if (kept !== null) return sendKept(request, reply, kept);
  const plan = makePlan();
  const format = calculationFormatOf(request);
  const data = await work.until(openData(request, store, plan, reportMissingScope));
  const found = await work.until(calculationAt(store.readers, plan, data));
  const answer = withUnknownMinRevision(found, request);
  const { revision, asOf, warnings } = answer.metadata;
  const { type, extension, disposition, hasMetadata } = FORMATS[format];
  const file = `calculation-${asOf.slice(0, 10)}.${extension}`;
  const headers = {
    'x-data-revision': revision,
    'content-disposition': `${disposition}; filename="${file}"`,
    ...(hasMetadata ? {} : warningsHeaders(warnings)),
  };
  const keep = (payload: Payload, tag: string): Payload => {
    if (store.answers === null || isUnknown(request)) return payload;
    const sent = { 'content-type': type, ...headers, ...cacheHeaders(tag) };
    const { newest } = data;
    const origin = { market: null, readableMarkets: readable, newest, tag, headers: sent };
    return store.answers.keep(key, origin, payload);
  };
  return sendTagged(request, reply, type, calculationText(answer, format), { headers, keep });
}

const readableMarketsOf = ({ context }: FastifyRequest): readonly MarketSlug[] =>
  marketsOpenTo(context.principal?.scopes ?? new Set());

function withUnknownMinRevision(
  answer: CalculationAnswer,
  { context }: FastifyRequest,
): CalculationAnswer {
  if (context.unknownMinRevision === null) return answer;
  const { metadata } = answer;
  const warnings = [...metadata.warnings, MIN_REVISION_UNKNOWN];
  return { ...answer, metadata: { ...metadata, warnings } };
}

const isPrice = (input: CalculationPlan['inputs'][number]): input is PriceInput =>
  input.kind === 'price';

/** The options by which the markets of a calculation are opened and their prices selected. */
function optionsIn({ inputs, references, requested }: CalculationPlan): Plan['options'] {
  const isConverted =
    (references?.currency ?? null) !== null ||
    inputs.some(
      (each) => each.kind === 'rate' || (each.kind === 'price' && each.currency !== null),
    );
  // Any currency: only whether there is one decides the snapshot.
  return { ...optionsOf({}), requested, currency: isConverted ? 'EUR' : null };
}

const FIRST_PAGE: Plan['page'] = { limit: null, after: null };

/** The plan that selects the prices of some codes in a market. */
const marketPlan = (market: Market, codes: readonly string[], plan: CalculationPlan): Plan => ({
  market,
  format: 'json',
  days: { first: -Infinity, last: Infinity },
  codes,
  lists: [],
  options: optionsIn(plan),
  page: FIRST_PAGE,
  by: 'body',
  readableMarkets: [],
});

/** The data of a calculation, and the newest revision at which they are current. */
interface OpenData extends CalculationData {
  readonly newest: NewestRevision;
}

/** Finds and opens the markets of a calculation at one revision, and selects its prices. */
async function openData(
  request: FastifyRequest,
  store: PriceStore,
  plan: CalculationPlan,
  reportMissingScope: ReportMissingScope,
): Promise<OpenData> {
  let plans: readonly CalculationPlan[] = [plan];
  const elsewhere = new Set<string>();
  for (;;) {
    const codes = codesIn(plans);
    const references = new Set(codes.map(codeKey));
    for (const code of codesIn([plan])) references.delete(codeKey(code));
    const opening = { plan, codes, elsewhere, references };
    const marketPlans = await plansOf(request, store, opening, reportMissingScope);
    const opened = await openMarkets(request, store, plan, marketPlans);
    const found = new Set(opened.markets.flatMap(({ prices }) => [...prices.keys()]));
    const missing = codes.filter((code) => !found.has(codeKey(code)));
    if (missing.some((code) => !elsewhere.has(codeKey(code)))) {
      // The market of a prefix may lack a code that another market has.
      for (const code of missing) elsewhere.add(codeKey(code));
      continue;
    }
    if (missing.length > 0) throw unknownCodes(plan, missing);
    // The references of a payable are known when it is read, and may lie in other markets.
    plans = await referencedPlans(plan, opened);
    const isOpen = codesIn(plans).every((code) => found.has(codeKey(code)));
    if (isOpen) return { ...opened, plans };
  }
}

/** The different codes of the prices of plans. */
const codesIn = (plans: readonly CalculationPlan[]): readonly string[] => [
  ...new Set(plans.flatMap(({ inputs }) => inputs.filter(isPrice).map(({ code }) => code))),
];

/** The codes whose markets are opened. */
interface Opening {
  readonly plan: CalculationPlan;
  readonly codes: readonly string[];
  /** The keys of codes that the market of their prefix turned out not to have. */
  readonly elsewhere: ReadonlySet<string>;
  /** The keys of codes that payables of the request name. */
  readonly references: ReadonlySet<string>;
}

/**
 * The plans of the markets of some codes.
 * @throws Problem `insufficient_scope` that names the markets, `validation_failed` for codes that
 *   no readable market has
 */
async function plansOf(
  request: FastifyRequest,
  { readers }: PriceStore,
  { plan, codes, elsewhere, references }: Opening,
  reportMissingScope: ReportMissingScope,
): Promise<readonly Plan[]> {
  const { signal } = request.context;
  const readable = readableMarketsOf(request);
  const db = () => readers.reads.db(signal);
  const found = await codeMarkets(readers.codeMarkets, db, codes, readable, elsewhere, references);
  const { known, closed, unknown } = found;
  if (closed.length > 0) {
    const scopes = closed.map(({ slug }) => scopeOf(slug));
    throw reportMissingScope(request, insufficientScopes(scopes));
  }
  if (unknown.length > 0) throw unknownCodes(plan, unknown);
  const byMarket = Map.groupBy(codes, (code) => known.get(codeKey(code)) as Market);
  return [...byMarket].map(([market, ofMarket]) => marketPlan(market, ofMarket, plan));
}

function unknownCodes(plan: CalculationPlan, unknown: readonly string[]): Problem {
  const sent = new Set(codesIn([plan]));
  const reference = unknown.find((code) => !sent.has(code));
  if (reference !== undefined) {
    const detail = `${quoted(reference)}, the reference of a payable, is not in this database`;
    return brokenRules([{ pointer: '/payables', code: 'unknown_code', detail }]);
  }
  return brokenRules(
    plan.inputs
      .filter(isPrice)
      .filter(({ code }) => unknown.includes(code))
      .map(({ code, codePointer }) => ({
        pointer: codePointer,
        code: 'unknown_code',
        detail: `"${quoted(code)}" matches nothing in the markets that your credential can read`,
      })),
  );
}

/** Opens markets at one revision: the newest of the request or a later one, or that of the plan. */
async function openMarkets(
  request: FastifyRequest,
  store: PriceStore,
  plan: CalculationPlan,
  plans: readonly Plan[],
): Promise<Omit<OpenData, 'plans'>> {
  const { readers } = store;
  const { newest, editions } = await openEditions(store, plans, await request.context.newest);
  const snapshotOf = (of: SnapshotPlan) => readers.snapshot(of, newest);
  const snapshots = await Promise.all(plans.map(snapshotOf));
  const markets = await Promise.all(
    plans.map(async (each, index): Promise<OpenMarket> => {
      const { market } = each;
      const { data } = snapshots[index] as Snapshot;
      const reader = editions[index] ?? readers.market(market, data, request.context);
      const prices = await reader.select(each);
      return { market, reader, data, prices: new Map(prices.map((p) => [codeKey(p.code), p])) };
    }),
  );
  // Without a price, the revision is that of the reference data.
  const reference = { market: { slug: 'reference' }, options: optionsIn(plan), page: FIRST_PAGE };
  const all = snapshots.length > 0 ? snapshots : [await snapshotOf(reference)];
  const last = all.reduce((a, b) => (isAfter(b.data.revision, a.data.revision) ? b : a));
  const [first] = markets;
  const references = await (first === undefined
    ? readers.references(readers.db, last.data)
    : first.reader.references());
  return { markets, references, data: last.data, source: last.rates, newest };
}

/** Rounds in which editions of several markets may come to one revision. */
const ROUNDS = 3;

/**
 * Opens the editions of markets at one newest revision. A market may be refreshed while another is
 * opened: then all are opened at the later revision. Null for a market that the database has to
 * read.
 */
async function openEditions(
  { book }: PriceStore,
  plans: readonly Plan[],
  requested: NewestRevision,
): Promise<{ newest: NewestRevision; editions: readonly (Edition | null)[] }> {
  let newest = requested;
  for (let round = 0; round < ROUNDS; round += 1) {
    const at = newest;
    const editions = await Promise.all(plans.map((each) => book?.open(each, at) ?? null));
    for (const edition of editions) {
      if (edition !== null && edition.newest.order > newest.order) newest = edition.newest;
    }
    if (newest === at) return { newest, editions };
  }
  return { newest, editions: plans.map(() => null) };
}
