import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { flatReader } from '../../contract/request/query.ts';
import { ref } from '../../contract/schemas/components.ts';
import { CurrencyList, RateList, RateQuery, UnitList } from '../../contract/schemas/reference.ts';
import { dayRates, rateSpan } from '../../conversion/discovery.ts';
import { CROSS_DECIMALS, roundingText } from '../../conversion/rounding.ts';
import {
  type DataRevision,
  newestRevision,
  readDataRevision,
  revisionText,
} from '../../db/revisions.ts';
import { brokenRules, type Violation } from '../../errors.ts';
import type { Readers } from '../../prices/answer/answer.ts';
import { currencyNamed, unknownCurrency } from '../../prices/answer/conversions.ts';
import { sampleRates } from '../../prices/answer/warnings.ts';
import { type RateSource, rateSource } from '../../prices/market/rates.ts';
import type { References } from '../../prices/market/references.ts';
import { decimalOf, decimalText } from '../../std/decimal.ts';
import { checkAcceptsJson, checkNoChoice } from '../reply/accept.ts';
import { sendTagged } from '../reply/send.ts';
import {
  currenciesOperation,
  NOT_MODIFIED,
  type Operation,
  ratesOperation,
  unitsOperation,
} from './operations.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

const revisionFields = (dataRevision: DataRevision) => ({
  revision: revisionText(dataRevision),
  asOf: dataRevision.committedAt,
});

const sourceFields = ({ slug, isSample }: RateSource) => ({
  source: slug,
  warnings: isSample ? [sampleRates(slug, '')] : [],
});

/** Reads the reference data and the exchange rates at one revision. */
async function ratesAndReferences(readers: Readers, { context: { work } }: FastifyRequest) {
  const db = readers.reads.db(work.signal);
  const { revision } = await newestRevision(db);
  const source = await rateSource(db, readers.rateSource, revision);
  const dataRevision = await readDataRevision(db, source.scopes, revision);
  const shared = Promise.all([
    readers.references(readers.db, dataRevision),
    readers.rates(readers.db, dataRevision.epoch, source),
  ]);
  const [references, table] = await work.until(shared);
  return { dataRevision, references, table, source };
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  dataRevision: DataRevision,
  body: object,
) {
  reply.header('x-data-revision', revisionText(dataRevision));
  return sendTagged(request, reply, JSON_TYPE, JSON.stringify(body));
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name < b.name ? -1 : 1;

async function currencies(request: FastifyRequest, reply: FastifyReply, readers: Readers) {
  const { dataRevision, references, table, source } = await ratesAndReferences(readers, request);
  const data = [...references.currencies.values()]
    .map(({ id, member }) => {
      const span = rateSpan(table, id);
      const { name, iso, symbol } = member;
      const firstRateDate = span?.first ?? null;
      return { id: member.id, iso, name, symbol, firstRateDate, lastRateDate: span?.last ?? null };
    })
    .sort((a, b) => (a.iso < b.iso ? -1 : 1));
  const $metadata = { ...revisionFields(dataRevision), ...sourceFields(source) };
  return send(request, reply, dataRevision, { $metadata, data });
}

async function units(request: FastifyRequest, reply: FastifyReply, readers: Readers) {
  const { work } = request.context;
  const dataRevision = await readDataRevision(readers.reads.db(work.signal), []);
  const references = await work.until(readers.references(readers.db, dataRevision));
  const data = [...references.units.values()]
    .map(({ unit, member, rec20 }) => {
      const factor = decimalText(decimalOf(unit.factor));
      return { ...member, dimension: unit.dimension, factor, rec20 };
    })
    .sort(byName);
  return send(request, reply, dataRevision, { $metadata: revisionFields(dataRevision), data });
}

interface RatesQuery {
  readonly base: string;
  readonly quote: string;
  readonly from?: string;
  readonly to?: string;
}

const rejectIfAny = (errors: readonly Violation[]): void => {
  if (errors.length > 0) throw brokenRules(errors);
};

const readQuery = flatReader(RateQuery);

/** The validated query. @throws Problem `validation_failed` with every violation */
function queryOf(url: string): RatesQuery {
  const { values, errors: found } = readQuery(url);
  const errors = [...found];
  const query = values as unknown as RatesQuery;
  const isWrong = (name: string) => errors.some((each) => each.pointer === `/${name}`);
  if (query.from && query.to && !isWrong('from') && !isWrong('to') && query.from > query.to) {
    errors.push({ pointer: '/from', code: 'date_order', detail: 'from must not lie after to' });
  }
  rejectIfAny(errors);
  return query;
}

function pairIn(references: References, query: RatesQuery) {
  const named = ['base', 'quote'].map((name) => {
    const iso = query[name as 'base' | 'quote'];
    return { pointer: `/${name}`, iso, found: currencyNamed(references, iso) };
  });
  const unknown = named.filter((each) => !each.found);
  rejectIfAny(unknown.map(({ pointer, iso }) => unknownCurrency(references, pointer, iso)));
  const [base, quote] = named.map((each) => each.found);
  if (!base || !quote) throw new Error('a currency was neither found nor refused');
  return { base, quote };
}

async function rates(request: FastifyRequest, reply: FastifyReply, readers: Readers) {
  const query = queryOf(request.url);
  const { dataRevision, references, table, source } = await ratesAndReferences(readers, request);
  const { base, quote } = pairIn(references, query);
  const $metadata = {
    ...revisionFields(dataRevision),
    ...sourceFields(source),
    sourceBase: source.base?.iso ?? null,
    base: base.member.iso,
    quote: quote.member.iso,
    rounding: roundingText({ decimals: CROSS_DECIMALS }),
  };
  const bounds = { from: query.from ?? null, to: query.to ?? null };
  const data = await dayRates(table, base.id, quote.id, bounds);
  return send(request, reply, dataRevision, { $metadata, data });
}

/** `GET /v3/reference/currencies`, `/units` and `/rates`: the data of conversions. */
export function referenceRoutes(app: FastifyInstance, readers: Readers): void {
  const route = (url: string, operation: Operation, answer: object, handler: typeof rates) => {
    app.get(url, {
      config: { access: 'any' },
      preParsing: async (request) =>
        handler === rates ? checkAcceptsJson(request) : checkNoChoice(request),
      schema: {
        ...operation,
        ...(handler === rates ? { querystring: RateQuery } : {}),
        response: { 200: { description: 'The entries', ...answer }, ...NOT_MODIFIED },
      },
      handler: (request, reply) => handler(request, reply, readers),
    });
  };
  route('/v3/reference/currencies', currenciesOperation, ref(CurrencyList), currencies);
  route('/v3/reference/units', unitsOperation, ref(UnitList), units);
  route('/v3/reference/rates', ratesOperation, ref(RateList), rates);
}
