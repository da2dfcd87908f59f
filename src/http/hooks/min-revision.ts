import type { preHandlerAsyncHookHandler } from 'fastify';
import { LATEST, type MinRevisionCheck } from '../../db/min-revision.ts';
import { Problem } from '../../errors.ts';
import { isOpen } from '../context.ts';

const HEADER = 'x-min-revision';
const LENGTH_MAX = 64;
/** A revision as answers name it, and as `options.revision` takes it. */
const FORM = /^[0-9a-z]{4,18}\.(0|[1-9]\d{0,17})$/;

const malformed = (): Problem =>
  new Problem(
    'malformed_request',
    `Send ${HEADER} once, with "${LATEST}" or a revision of x-data-revision (at most ` +
      `${LENGTH_MAX} characters)`,
  );

/**
 * Monotonic reads across nodes: a request with `x-min-revision` is answered at this revision or a
 * later one. A revision of another history (another epoch, or lost in a failover or a restore)
 * cannot be compared: the answer shows the newest revision and has the header
 * `x-min-revision-unknown`.
 */
export const checkMinRevision =
  (check: MinRevisionCheck): preHandlerAsyncHookHandler =>
  async (request, reply) => {
    const text = request.headers[HEADER];
    if (text === undefined || isOpen(request)) return;
    const isOne = typeof text === 'string' && text.length <= LENGTH_MAX;
    if (!isOne || (text !== LATEST && !FORM.test(text))) throw malformed();
    const { context } = request;
    const { newest, isKnown } = await context.work.until(check.reach(text));
    context.useNewest(newest);
    if (isKnown) return;
    context.unknownMinRevision = text;
    reply.header('x-min-revision-unknown', text);
  };
