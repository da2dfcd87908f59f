import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEM_TYPE, problemBody, type RequestPart } from '../contract/schemas/problem.ts';
import { databaseFailureOf, type FailureReason } from '../db/failures.ts';
import { Problem, type ProblemCode } from '../errors.ts';
import { maskedEncoded } from '../std/secrets.ts';
import { ClientDisconnected } from './work.ts';

/** Maximum length of a path in logs and problems, in characters. */
const SHOWN_MAX = 256;

/**
 * The path of a request target, without query and fragment, and without the scheme and authority of
 * the absolute form (RFC 9112, section 3.2.2).
 */
export const pathOf = (target: string): string =>
  target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '';

/** The path for logs and problems: secrets are masked, and its length is limited. */
export const shownPath = (target: string): string =>
  maskedEncoded(pathOf(target)).slice(0, SHOWN_MAX);

const internal = (cause: unknown): Problem =>
  new Problem(
    'internal_error',
    'The service failed to answer. Try again; if it fails again, report the request id',
    { cause },
  );

/** Problems by the error code of Fastify. */
const FASTIFY: Record<string, readonly [ProblemCode, string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    'Send the body with Content-Type: application/json',
  ],
  FST_ERR_CTP_EMPTY_TYPE: [
    'unsupported_media_type',
    'Send the body with Content-Type: application/json',
  ],
  FST_ERR_BAD_URL: ['malformed_request', 'The address has a broken percent escape'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'There is nothing at this address'],
};

/** The problem code of each reason why the database did not answer. */
const DATABASE = {
  unavailable: 'database_unavailable',
  busy: 'overloaded',
  schema_outdated: 'schema_outdated',
  statement_timeout: 'query_timeout',
  not_replayed: 'revision_not_here',
} as const satisfies Record<FailureReason, ProblemCode>;

/** The problem of a database failure; null for other errors. */
function databaseProblem(error: unknown): Problem | null {
  const failure = databaseFailureOf(error);
  if (failure === null) return null;
  return new Problem(DATABASE[failure.reason], failure.message, { cause: failure.cause });
}

function isClientError(error: unknown): boolean {
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  return typeof status === 'number' && status >= 400 && status < 500;
}

/** Maps an error to a problem; an unexpected one becomes `internal_error`. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const code = (error as { code?: unknown } | null)?.code;
  const known = typeof code === 'string' ? FASTIFY[code] : undefined;
  if (known) return new Problem(known[0], known[1], { cause: error });
  // Fastify marks errors of the client with a 4xx status.
  if (isClientError(error)) {
    return new Problem('malformed_request', 'The request could not be read', { cause: error });
  }
  return databaseProblem(error) ?? internal(error);
}

/** GET and HEAD have no body, so their violations point to parameters. */
const partOf = ({ method }: FastifyRequest): RequestPart =>
  method === 'GET' || method === 'HEAD' ? 'address' : 'body';

/** Sends a problem as `application/problem+json`, never cached. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
): FastifyReply {
  return reply
    .code(problem.statusCode)
    .headers(problem.headers)
    .header('cache-control', 'no-store')
    .header('x-request-id', request.id)
    .type(PROBLEM_TYPE)
    .send(problemBody(problem, shownPath(request.url), request.id, partOf(request)));
}

/** Sends every error of a request as a problem. `logEnd` logs it with its cause. */
export function problems(app: FastifyInstance): void {
  app.setErrorHandler((error, request, reply) => {
    // The client is disconnected, which probably caused the error.
    if (error instanceof ClientDisconnected || reply.raw.destroyed) {
      request.context.failure = new ClientDisconnected();
      return;
    }
    const problem = problemOf(error);
    request.context.failure = problem;
    return sendProblem(request, reply, problem);
  });
}
