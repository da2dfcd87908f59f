import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import type { SentAnswer } from '../../book/answers.ts';
import type { PriceBook } from '../../book/book.ts';
import type { OpenBook } from '../../book/open.ts';
import type { Market } from '../../catalog/markets.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { FORMATS, type Format } from '../../contract/schemas/formats.ts';
import { revisionText } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { type Answer, answerAt, type Metadata, type Readers } from '../../prices/answer/answer.ts';
import { MIN_REVISION_UNKNOWN, type Warning } from '../../prices/answer/warnings.ts';
import { laterPrices } from '../../prices/market/unmatched.ts';
import { namesPast } from '../../prices/plan/options.ts';
import { answerKey, type Plan, type RequestOrigin } from '../../prices/plan/plan.ts';
import type { Snapshot } from '../../prices/snapshot.ts';
import { checkAnswer, writeAnswer } from '../../prices/write/formats.ts';
import { type Body, BodyStream, batched } from '../../std/body.ts';
import { UNHELD_BYTES } from '../../std/held-bytes.ts';
import type { CodingPreference } from '../../std/negotiation.ts';
import { VERSION } from '../../std/program.ts';
import { maskedEncoded } from '../../std/secrets.ts';
import { turn } from '../../std/turns.ts';
import {
  BYTES_MIN,
  cacheHeaders,
  codingOf,
  etagMatch,
  type Payload,
  sendCoded,
  tagOf,
  VARY,
} from './send.ts';

/** Maximum size of the warnings header: clients and proxies accept headers of about 8 KB. */
const WARNINGS_BYTES_MAX = 4_096;

/** JSON in ASCII, as required in headers. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The first warnings as JSON, as many as fit. */
function warningsText(warnings: readonly Warning[]): string {
  const texts: string[] = [];
  let bytes = 2;
  for (const warning of warnings) {
    const text = asciiJson(warning);
    bytes += text.length + 1;
    if (bytes > WARNINGS_BYTES_MAX) break;
    texts.push(text);
  }
  return `[${texts.join(',')}]`;
}

/**
 * The headers that describe an answer: revision, file name and next page. For a format without
 * `$metadata` they also have the first warnings, as many as fit, and the number of all warnings.
 */
function metadataHeaders(
  { method, url }: FastifyRequest,
  { market, revision, asOf, nextCursor, warnings }: Metadata,
  format: Format,
): Record<string, string> {
  const headers: Record<string, string> = { 'x-data-revision': revision };
  const { extension, disposition } = FORMATS[format];
  const file = `${market}-${asOf.slice(0, 10)}.${extension}`;
  headers['content-disposition'] = `${disposition}; filename="${file}"`;
  if (nextCursor !== null) {
    headers['x-next-cursor'] = nextCursor;
    const next = nextPage(url, nextCursor);
    // Clients always have the cursor. An address with a secret is not repeated.
    const isShown = next.length <= LINK_MAX && maskedEncoded(next) === next;
    if (method !== 'POST' && isShown) headers['link'] = `<${next}>; rel="next"`;
  }
  if (format === 'json') return headers;
  headers['x-warnings'] = warningsText(warnings);
  headers['x-warnings-count'] = String(warnings.length);
  return headers;
}

/**
 * Maximum length of the Link header. An address of `URL_BYTES_MAX` would exceed the limits for all
 * headers of an answer, beyond which a proxy sends 502 instead: nginx has 4 or 8 KB by default.
 */
const LINK_MAX = 4_096;

/** The relative address of the next page, because a proxy may have changed the path. */
function nextPage(url: string, cursor: string): string {
  // A value may contain question marks.
  const [, text = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const query = new URLSearchParams(text);
  query.set('cursor', cursor);
  return `?${query}`;
}

/** Slices produced before a response begins: the start, a record, and its points. */
const SLICES_AHEAD = 3;

/** Size up to which a response is produced completely before it is sent, with its length. */
const BYTES_AHEAD = 65_536;

async function* continued(first: readonly Buffer[], rest: AsyncGenerator<Buffer>) {
  yield* first;
  yield* rest;
}

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
  const body: Body = { batches: batched(continued(first, slices)), bytes: null };
  return new BodyStream(body);
}

/** The payload of a body: one buffer for a small body of known size. */
function bodyPayload(body: Body): Buffer | BodyStream {
  const { bytes, batches } = body;
  if (bytes === null || bytes > BYTES_AHEAD || !Array.isArray(batches)) return new BodyStream(body);
  const slices: readonly Buffer[] = batches.flat();
  const [only] = slices;
  return only !== undefined && slices.length === 1 ? only : Buffer.concat(slices);
}

/** True if a body is too small for gzip. */
const isSmall = ({ bytes }: Pick<Body, 'bytes'>, { acceptsIdentity }: CodingPreference): boolean =>
  bytes !== null && bytes < BYTES_MIN && acceptsIdentity;

/** Number of records from which a response begins in an event-loop turn of its own. */
const RECORDS_AT_ONCE = 1_000;

/**
 * The payload of an answer. The price book encodes it if it can, as gzip if the client prefers that
 * and the body is not small. Otherwise a writer does.
 * @param openBook null if the answer was read from the database
 */
async function startAnswer(
  openBook: OpenBook | null,
  answer: Answer,
  format: Format,
  snapshot: Snapshot,
  wanted: CodingPreference,
): Promise<Payload> {
  const { coding } = wanted;
  if (answer.metadata.count > RECORDS_AT_ONCE) await turn();
  if (coding === 'gzip') {
    const body = openBook?.body(answer, format, snapshot, coding);
    if (body && !isSmall(body, wanted)) return { bytes: bodyPayload(body), coding };
  }
  const body = openBook?.body(answer, format, snapshot, null);
  const bytes = body ? bodyPayload(body) : await startBody(writeAnswer(answer));
  return { bytes, coding: null };
}

/** The readers of prices: the book, or the database for prices that the book lacks. */
export interface PriceStore {
  readonly readers: Readers;
  readonly book: PriceBook | null;
}

/** Headers of a response that must not be cached. */
const UNTAGGED = { 'cache-control': 'no-store', vary: VARY };

/** The entity tag of an answer, which needs no price to be read. */
function etagOf(
  plan: Plan,
  { snapshot: { data, rates }, later }: Awaited<ReturnType<typeof resolveSnapshot>>,
  form: readonly string[],
): string {
  const revisions = [revisionText(data), data.reference, later];
  const source = rates === null ? '' : `${rates.slug}.${rates.revision}`;
  // Another version of the service may write other bytes.
  return tagOf(VERSION, answerKey(plan), ...revisions, source, ...form);
}

/** The requested prices that were added after a past snapshot, as text; warnings name them. */
async function laterText(db: () => Kysely<Database>, plan: Plan, { data }: Snapshot) {
  const { codes, market, options } = plan;
  if (codes === null || !namesPast(options)) return '';
  const later = await laterPrices(db(), market.slug, data.revision, codes.map(codeKey));
  return [...later]
    .map(([key, { revision }]) => `${key}=${revision}`)
    .toSorted()
    .join(' ');
}

/** Opens the price book or reads a snapshot, before any price is read. */
async function resolveSnapshot(
  request: FastifyRequest,
  { readers: database, book }: PriceStore,
  plan: Plan,
) {
  const { work } = request.context;
  const asked = await request.context.newest;
  const openBook = book && (await book.open(plan, asked));
  const { readers, newest } = openBook ?? { readers: database, newest: asked };
  const db = () => readers.reads.db(work.signal);
  const snapshot = await readers.snapshot(plan, newest);
  // The book has the newest snapshot: there are no later prices.
  const isTagged = openBook === null && request.method !== 'POST';
  const later = isTagged ? await laterText(db, plan, snapshot) : '';
  return { openBook, readers, snapshot, later };
}

/** Maximum length of a cache key; longer keys are hashed. */
const KEY_MAX = 512;

/**
 * A text that is equal for equal requests. Apart from them, an answer depends only on the
 * snapshot and, if the request names codes, on the markets that the principal may read.
 * @param body the bytes of the body, one character each
 */
export function requestKey({ method, url, headers }: FastifyRequest, body: string): string {
  const { accept = '', 'accept-encoding': coding = '' } = headers;
  const text = `${method === 'POST' ? 'POST' : 'GET'}\n${url}\n${accept}\n${coding}\n${body}`;
  return text.length <= KEY_MAX ? text : hash('sha256', text, 'base64');
}

/** A request for prices. */
export interface PriceQuery {
  readonly market: Market;
  readonly origin: RequestOrigin;
  /** See `requestKey`; null if the answer must not come from the cache. */
  readonly text: string | null;
  /** Returns the plan. @throws Problem for a request that breaks a rule */
  readonly makePlan: () => Plan;
}

/** Sends a 304 with the headers of the cached response. */
function notModified(reply: FastifyReply, revision: string, tag: string): FastifyReply {
  reply.header('x-data-revision', revision).headers(cacheHeaders(tag));
  return reply.code(304).send();
}

/** Sends a cached answer. */
async function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  { sent, slices, length }: SentAnswer,
): Promise<FastifyReply> {
  const { snapshot, tag, headers, wanted, coding } = sent;
  if (tag !== null && etagMatch(request, tag) !== null) {
    return notModified(reply, revisionText(snapshot.data), tag);
  }
  reply.headers(headers);
  if (request.method === 'HEAD') {
    const isSentAsIs = coding === wanted.coding || isSmall({ bytes: length }, wanted);
    if (isSentAsIs) reply.header('content-length', length);
    if (coding !== null) reply.header('content-encoding', coding);
    return reply.send();
  }
  const bytes = bodyPayload({ batches: [slices], bytes: length });
  return sendCoded(reply, { bytes, coding }, wanted);
}

/** The slices of a complete payload of at most `bytesMax` bytes; null for another. */
function slicesOfPayload({ bytes: payload }: Payload, bytesMax: number): readonly Buffer[] | null {
  if (!(payload instanceof BodyStream)) return payload.length <= bytesMax ? [payload] : null;
  const { bytes, batches } = payload.body;
  return bytes !== null && bytes <= bytesMax && Array.isArray(batches) ? batches.flat() : null;
}

/** Adds the warning about an `x-min-revision` of another history. */
function withUnknownMinRevision(answer: Answer, { context }: FastifyRequest): Answer {
  if (context.unknownMinRevision === null) return answer;
  const { metadata } = answer;
  return {
    ...answer,
    metadata: { ...metadata, warnings: [...metadata.warnings, MIN_REVISION_UNKNOWN] },
  };
}

/**
 * Answers a request for prices at the newest or the requested revision. POST, GET and HEAD send the
 * same. A client may cache the response to a GET; a repeated GET is a 304 while nothing changed.
 */
export async function sendPrices(
  request: FastifyRequest,
  reply: FastifyReply,
  store: PriceStore,
  { market: { slug }, origin, text: asked, makePlan }: PriceQuery,
): Promise<FastifyReply> {
  const { method } = request;
  const { work, newest } = request.context;
  const { book } = store;
  const text = request.context.unknownMinRevision === null ? asked : null;
  if (book !== null && text !== null) {
    const again = await work.until(book.cachedAnswer(slug, text, origin, () => newest));
    // A slow reader retains a cached answer even after its eviction.
    const mayHold = (each: SentAnswer): boolean =>
      each.length <= UNHELD_BYTES || request.context.hold(each.length, each);
    if (again !== null && mayHold(again)) return sendCached(request, reply, again);
  }
  const plan = makePlan();
  const { format } = plan;
  const found = await work.until(resolveSnapshot(request, store, plan));
  const { openBook, readers, snapshot } = found;
  const wanted = codingOf(request, openBook?.offersGzip(plan, format));
  const { type } = FORMATS[format];
  const form = [wanted.coding ?? ''];
  if (request.context.unknownMinRevision !== null) form.push('unknown');
  const tag = method === 'POST' ? null : etagOf(plan, found, form);
  const named = tag === null ? null : etagMatch(request, tag);
  const revision = revisionText(snapshot.data);
  if (named === 'tag') return notModified(reply, revision, tag ?? '');
  const read = await work.until(answerAt(readers, plan, snapshot, request.context));
  const answer = withUnknownMinRevision(read, request);
  // Without a body nothing else would reject an answer that its format cannot hold.
  if (method === 'HEAD' || named === 'any') await work.until(checkAnswer(answer));
  // `If-None-Match: *` matches any answer, and the request was not rejected.
  if (named === 'any') return notModified(reply, revision, tag ?? '');
  // An error before the first byte is sent as a problem, without these headers.
  const payload =
    method === 'HEAD' ? null : await startAnswer(openBook, answer, format, snapshot, wanted);
  const about = tag === null ? UNTAGGED : cacheHeaders(tag);
  const headers = {
    'content-type': type,
    ...metadataHeaders(request, answer.metadata, format),
    ...about,
  };
  reply.headers(headers);
  if (payload === null) {
    const { coding } = wanted;
    const isKept = coding === 'gzip' || coding === null;
    const length = isKept ? openBook?.keptLength(answer, format, snapshot, coding) : null;
    if (length) reply.header('content-length', length);
    if (length && coding) reply.header('content-encoding', coding);
    return reply.send();
  }
  if (text !== null) {
    const { coding } = payload;
    const sent = { plan, snapshot, tag, headers, wanted, coding };
    openBook?.cacheAnswer(text, sent, (bytesMax) => slicesOfPayload(payload, bytesMax));
  }
  return sendCoded(reply, payload, wanted);
}
