import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PriceBook } from '../book/book.ts';
import { FORMATS, type Format } from '../contract/formats.ts';
import { revisionText } from '../db/revisions.ts';
import { answerAt, type Sources } from '../prices/answer.ts';
import { canonicalKey } from '../prices/canonical.ts';
import type { Plan } from '../prices/plan.ts';
import type { State } from '../prices/state.ts';
import { VERSION } from '../version.ts';
import { headersAbout } from './about.ts';
import { codingOf, sendCoded } from './coded.ts';
import { namedBy, taggedHeaders, tagOf, VARY } from './etag.ts';
import { startedAnswer } from './start.ts';

/** Where prices are read: in the book as far as they are there, and else in the database. */
export interface Shown {
  readonly sources: Sources;
  readonly book: PriceBook | null;
}

/** The headers of an answer that nobody may keep. */
const UNTAGGED = { 'cache-control': 'no-store', vary: VARY };

/** The tag of an answer, known before anything of it is read. */
function tagAt(plan: Plan, { head, rates }: State, form: readonly string[]): string {
  const state = [revisionText(head), head.reference];
  const source = rates === null ? '' : `${rates.slug}.${rates.revision}`;
  // Another version may write other bytes.
  return tagOf(VERSION, canonicalKey(plan), ...state, source, ...form);
}

/** What is known of an answer before any of it is read. */
async function foundFor(request: FastifyRequest, { sources: database, book }: Shown, plan: Plan) {
  const asked = request.newest && (await request.newest);
  const opened = book && (await book.open(plan, asked));
  const { sources, newest } = opened ?? { sources: database, newest: asked };
  const state = await sources.state(() => sources.reads.db(request.work.signal), plan, newest);
  return { opened, sources, state };
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
  const { work } = request;
  const { opened, sources, state } = await work.until(foundFor(request, shown, plan));
  const wanted = codingOf(request, opened?.offersGzip(plan, format));
  const form = [FORMATS[format].type, wanted.coding ?? ''];
  const tag = request.method === 'POST' ? null : tagAt(plan, state, form);
  const named = tag === null ? null : namedBy(request, tag);
  const notModified = () => {
    reply.header('x-data-revision', revisionText(state.head)).headers(taggedHeaders(tag ?? ''));
    return reply.code(304).send();
  };
  if (named === 'tag') return notModified();
  const answer = await work.until(answerAt(sources, plan, state, work));
  // Any answer will do: there is one, as nothing was refused.
  if (named === 'any') return notModified();
  // What fails before the first byte is a problem, and has none of the headers.
  const isHead = request.method === 'HEAD';
  const payload = isHead ? null : await startedAnswer(opened, answer, format, state, wanted);
  reply.type(FORMATS[format].type).headers(headersAbout(answer, format));
  reply.headers(tag === null ? UNTAGGED : taggedHeaders(tag));
  return payload === null ? reply.send() : sendCoded(reply, payload, wanted);
}
