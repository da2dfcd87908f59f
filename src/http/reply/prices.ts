import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PriceBook } from '../../book/book.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { type Format, formatEntry } from '../../contract/schemas/formats.ts';
import type { NewestRevision } from '../../db/newest-revision.ts';
import { revisionText } from '../../db/revisions.ts';
import { type Answer, answerAt, type Readers } from '../../prices/answer/answer.ts';
import { MIN_REVISION_UNKNOWN } from '../../prices/answer/warnings.ts';
import type { MarketReader } from '../../prices/market/reader.ts';
import { laterPrices } from '../../prices/market/unmatched.ts';
import { namesPast } from '../../prices/plan/options.ts';
import { answerKey, type Plan, type RequestOrigin } from '../../prices/plan/plan.ts';
import type { Snapshot } from '../../prices/snapshot.ts';
import { checkAnswer, writeAnswer } from '../../prices/write/formats.ts';
import { BodyStream, batched } from '../../std/body-stream.ts';
import type { CodingPreference } from '../../std/negotiation.ts';
import { VERSION } from '../../std/program.ts';
import { turn } from '../../std/turns.ts';
import type { AnswerCache, AnswerOrigin } from './answer-cache.ts';
import { BYTES_AHEAD, isUnknown, keptAnswer, sendKept, sendNotModified } from './kept-answers.ts';
import { priceHeaders } from './price-headers.ts';
import {
  cacheHeaders,
  coded,
  codingOf,
  etagMatch,
  type Payload,
  sendPayload,
  tagOf,
  VARY,
} from './send.ts';

/** Everything that answers are made from. */
export interface PriceStore {
  /** Readers of the database, for prices that the book lacks. */
  readonly readers: Readers;
  /** Null if memory for prices is turned off, and so is `answers`. */
  readonly book: PriceBook | null;
  readonly answers: AnswerCache | null;
}

/** A request for prices. */
export interface PriceQuery {
  readonly origin: RequestOrigin;
  /** See `requestKey`; null if the answer must not come from the cache. */
  readonly key: string | null;
  /** Returns the plan. @throws Problem for a request that breaks a rule */
  readonly makePlan: () => Plan;
}

/**
 * Answers a request for prices at the newest or the requested revision. POST, GET and HEAD send the
 * same. A client may cache the response to a GET; a repeated GET is a 304 while nothing changed.
 */
export async function sendPrices(
  request: FastifyRequest,
  reply: FastifyReply,
  store: PriceStore,
  query: PriceQuery,
): Promise<FastifyReply> {
  const { work } = request.context;
  const kept = await keptAnswer(request, store, query);
  if (kept !== null) return sendKept(request, reply, kept);
  const plan = query.makePlan();
  const resolved = await work.until(resolve(request, store, plan));
  const { reader, snapshot, tag } = resolved;
  const match = tag === null ? null : etagMatch(request, tag);
  if (match === 'tag') return sendUnchanged(reply, resolved);
  const read = await work.until(answerAt(store.readers, reader, plan, snapshot, request.context));
  const answer = withUnknownMinRevision(read, request);
  // `If-None-Match: *` matches any answer, and the request was not rejected.
  if (match === 'any') {
    await work.until(checkAnswer(answer));
    return sendUnchanged(reply, resolved);
  }
  const headers = {
    ...priceHeaders(request, answer.metadata, plan.format),
    ...(tag === null ? UNTAGGED : cacheHeaders(tag)),
  };
  if (request.method === 'HEAD') return sendHead(request, reply, answer, headers);
  return sendBody(request, reply, store, query, { answer, headers, resolved });
}

/** Sends the headers of an answer, whose length is not known. */
async function sendHead(
  { context }: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  headers: AnswerOrigin['headers'],
): Promise<FastifyReply> {
  // Without a body nothing else would reject an answer that its format cannot hold.
  await context.work.until(checkAnswer(answer));
  return reply.headers(headers).send();
}

interface NewAnswer extends Pick<AnswerOrigin, 'headers'> {
  readonly answer: Answer;
  readonly resolved: ResolvedRequest;
}

/** Sends an answer, and keeps it if the request is repeated. */
async function sendBody(
  request: FastifyRequest,
  reply: FastifyReply,
  { answers }: PriceStore,
  { key }: PriceQuery,
  { answer, headers, resolved }: NewAnswer,
): Promise<FastifyReply> {
  const { plan } = answer.context;
  // An error before the first byte is sent as a problem, without these headers.
  const payload = await startAnswer(answer, bodyCoding(request, plan.format));
  reply.headers(headers);
  if (answers === null || key === null || isUnknown(request)) return sendPayload(reply, payload);
  const { snapshot, newest, tag } = resolved;
  const readableMarkets = plan.codes && plan.readableMarkets;
  const origin = { market: { plan, snapshot }, readableMarkets, newest, tag, headers };
  return sendPayload(reply, answers.keep(key, origin, payload));
}

/** The coding of a body; none for a format that is compressed already, unless a client insists. */
function bodyCoding(request: FastifyRequest, format: Format): CodingPreference {
  const wanted = codingOf(request);
  const { isCompressed = false } = formatEntry(format);
  return isCompressed && wanted.acceptsIdentity ? { ...wanted, coding: null } : wanted;
}

/** Sends a 304 with the headers of the cached response. */
const sendUnchanged = (reply: FastifyReply, { snapshot, tag }: ResolvedRequest): FastifyReply =>
  sendNotModified(reply, revisionText(snapshot.data), tag);

/** Headers of a response that must not be cached. */
const UNTAGGED = { 'cache-control': 'no-store', vary: VARY };

/** The reader and the revision of an answer, before any price is read. */
interface ResolvedRequest {
  readonly reader: MarketReader;
  readonly snapshot: Snapshot;
  /** The newest revision of the request, or a later one. */
  readonly newest: NewestRevision;
  /** The ETag; null if clients must not cache the answer. */
  readonly tag: string | null;
}

/** Opens the price book or a reader of the database, before any price is read. */
async function resolve(
  request: FastifyRequest,
  { readers, book }: PriceStore,
  plan: Plan,
): Promise<ResolvedRequest> {
  const { context } = request;
  const requested = await context.newest;
  const edition = book && (await book.open(plan, requested));
  // An edition may be refreshed after the request arrived: a later revision is allowed.
  const newest =
    edition !== null && edition.newest.order > requested.order ? edition.newest : requested;
  const snapshot = await readers.snapshot(plan, newest);
  const reader = edition ?? readers.market(plan.market, snapshot.data, context);
  if (request.method === 'POST') return { reader, snapshot, newest, tag: null };
  // The book has the newest snapshot: there are no later prices.
  const later = edition === null ? await laterText(request, readers, plan, snapshot) : '';
  const { data, rates } = snapshot;
  const revisions = [revisionText(data), data.reference, later];
  const source = rates === null ? '' : `${rates.slug}.${rates.revision}`;
  const variant = [
    bodyCoding(request, plan.format).coding ?? '',
    ...(isUnknown(request) ? ['unknown'] : []),
  ];
  // Another version of the service may write other bytes.
  const tag = tagOf(VERSION, answerKey(plan), ...revisions, source, ...variant);
  return { reader, snapshot, newest, tag };
}

/** The requested prices that were added after a past snapshot, as text; warnings name them. */
async function laterText(
  { context }: FastifyRequest,
  { reads }: Readers,
  { codes, market, options }: Plan,
  { data }: Snapshot,
): Promise<string> {
  if (codes === null || !namesPast(options)) return '';
  const db = reads.db(context.signal);
  const later = await laterPrices(db, market.slug, data.revision, codes.map(codeKey));
  return [...later]
    .map(([key, { revision }]) => `${key}=${revision}`)
    .toSorted()
    .join(' ');
}

/** Adds the warning about an `x-min-revision` of another history. */
function withUnknownMinRevision(answer: Answer, request: FastifyRequest): Answer {
  if (!isUnknown(request)) return answer;
  const { metadata } = answer;
  return {
    ...answer,
    metadata: { ...metadata, warnings: [...metadata.warnings, MIN_REVISION_UNKNOWN] },
  };
}

/** Number of records from which a response begins in an event-loop turn of its own. */
const RECORDS_AT_ONCE = 1_000;

/** The bytes of an answer in the preferred coding. */
async function startAnswer(answer: Answer, wanted: CodingPreference): Promise<Payload> {
  if (answer.metadata.count > RECORDS_AT_ONCE) await turn();
  return coded(await startBody(writeAnswer(answer)), wanted);
}

/** Fewest slices before a response begins: those of the start, and the first of the records. */
const SLICES_AHEAD = 3;

/**
 * Produces the first slices of a payload. It is one buffer if there are few slices, else a stream.
 * A failure before the first byte is sent as a problem; a later one breaks the connection.
 */
async function startBody(slices: AsyncGenerator<Buffer>): Promise<Buffer | BodyStream> {
  const first: Buffer[] = [];
  for (let bytes = 0; first.length < SLICES_AHEAD || bytes < BYTES_AHEAD; ) {
    const { value, done } = await slices.next();
    if (done) return Buffer.concat(first);
    first.push(value);
    bytes += value.length;
  }
  return new BodyStream({ batches: batched(withFirst(first, slices)), bytes: null });
}

async function* withFirst(first: readonly Buffer[], rest: AsyncGenerator<Buffer>) {
  yield* first;
  yield* rest;
}
