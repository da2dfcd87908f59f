import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import type { PriceBook } from '../book/book.ts';
import { codeKey } from '../catalog/match-key.ts';
import { FORMATS, type Format } from '../contract/formats.ts';
import { revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { answerAt, type Metadata, type Sources } from '../prices/answer.ts';
import { canonicalKey } from '../prices/canonical.ts';
import { laterPrices } from '../prices/later-prices.ts';
import type { Plan } from '../prices/plan.ts';
import { namesPast } from '../prices/plan-options.ts';
import type { State } from '../prices/state.ts';
import { VERSION } from '../version.ts';
import type { WantedCoding } from '../wire/coding.ts';
import { headersAbout } from './about.ts';
import { codingOf, type Payload, sendCoded } from './coded.ts';
import { namedBy, taggedHeaders, tagOf, VARY } from './etag.ts';
import { repeatedAnswer, startedAnswer } from './start.ts';

/** Where prices are read: in the book as far as they are there, and else in the database. */
export interface Shown {
  readonly sources: Sources;
  readonly book: PriceBook | null;
}

/** The headers of an answer that nobody may keep. */
const UNTAGGED = { 'cache-control': 'no-store', vary: VARY };

/** The tag of an answer, known before anything of it is read. */
function tagAt(
  plan: Plan,
  { state: { head, rates }, later }: Awaited<ReturnType<typeof foundFor>>,
  form: readonly string[],
): string {
  const state = [revisionText(head), head.reference, later];
  const source = rates === null ? '' : `${rates.slug}.${rates.revision}`;
  // Another version may write other bytes.
  return tagOf(VERSION, canonicalKey(plan), ...state, source, ...form);
}

/** The prices that came after a past state and that its answer warns of, as a text. */
async function laterText(db: () => Kysely<Database>, plan: Plan, { head }: State) {
  const { codes, market, options } = plan;
  if (codes === null || !namesPast(options)) return '';
  const later = await laterPrices(db(), market.slug, head.revision, codes.map(codeKey));
  return [...later]
    .map(([key, { revision }]) => `${key}=${revision}`)
    .toSorted()
    .join(' ');
}

/** What is known of an answer before any of it is read. */
async function foundFor(request: FastifyRequest, { sources: database, book }: Shown, plan: Plan) {
  const asked = request.newest && (await request.newest);
  const opened = book && (await book.open(plan, asked));
  const { sources, newest } = opened ?? { sources: database, newest: asked };
  const db = () => sources.reads.db(request.work.signal);
  const state = await sources.state(db, plan, newest);
  // The book has the newest state, after which nothing came.
  const isTagged = opened === null && request.method !== 'POST';
  const later = isTagged ? await laterText(db, plan, state) : '';
  return { opened, sources, state, later };
}

/** An answer that is known to exist: what it says of itself, and how to begin to send it. */
interface Ready {
  readonly metadata: Metadata;
  readonly payload: () => Payload | Promise<Payload>;
}

/** The answer to a plan: as it was put together before, or made now. */
async function readyFor(
  { work }: FastifyRequest,
  { opened, sources, state }: Awaited<ReturnType<typeof foundFor>>,
  plan: Plan,
  format: Format,
  wanted: WantedCoding,
): Promise<Ready> {
  const repeated = opened && repeatedAnswer(opened, plan, format, state, wanted);
  if (repeated) return repeated;
  const answer = await work.until(answerAt(sources, plan, state, work));
  const { metadata } = answer;
  return { metadata, payload: () => startedAnswer(opened, answer, format, state, wanted) };
}

/**
 * Answers a plan as its prices are now, or were at its moment. POST, GET and HEAD send the same;
 * what a GET brought may be kept, and is a 304 to whoever has it already.
 */
export async function sendPrices(
  request: FastifyRequest,
  reply: FastifyReply,
  shown: Shown,
  plan: Plan,
  format: Format,
): Promise<FastifyReply> {
  const found = await request.work.until(foundFor(request, shown, plan));
  const { opened, state } = found;
  const wanted = codingOf(request, opened?.offersGzip(plan, format));
  const form = [FORMATS[format].type, wanted.coding ?? ''];
  const tag = request.method === 'POST' ? null : tagAt(plan, found, form);
  const named = tag === null ? null : namedBy(request, tag);
  const notModified = () => {
    reply.header('x-data-revision', revisionText(state.head)).headers(taggedHeaders(tag ?? ''));
    return reply.code(304).send();
  };
  if (named === 'tag') return notModified();
  const ready = await readyFor(request, found, plan, format, wanted);
  // Any answer will do: there is one, as nothing was refused.
  if (named === 'any') return notModified();
  // What fails before the first byte is a problem, and has none of the headers.
  const payload = request.method === 'HEAD' ? null : await ready.payload();
  reply.type(FORMATS[format].type).headers(headersAbout(ready.metadata, format));
  reply.headers(tag === null ? UNTAGGED : taggedHeaders(tag));
  return payload === null ? reply.send() : sendCoded(reply, payload, wanted);
}
