import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../errors.ts';
import type { Ended, Tracing } from '../tracing/tracing.ts';
import { isOurs, operationOf, statusOf, whoOf } from './observe.ts';
import { shownPath } from './path.ts';

/** What a trace tells of a request: what the log does, no header, query or body. */
function endedOf(request: FastifyRequest, reply: FastifyReply): Ended {
  const { method, url, id, ip, is404, failure, principal, routeOptions } = request;
  const status = statusOf(request, reply);
  const route = is404 ? undefined : routeOptions.url;
  const who = Object.entries(whoOf(principal ?? null));
  return {
    name: route === undefined ? method : `${method} ${route}`,
    attributes: {
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status === 'broken' ? reply.statusCode : status,
      'url.path': shownPath(url),
      'client.address': ip,
      'error.type': failure instanceof Problem ? failure.code : undefined,
      'prices.operation': operationOf(request),
      'prices.request_id': id,
      'prices.revision': reply.getHeader('x-data-revision')?.toString(),
      ...Object.fromEntries(who.map(([kind, shown]) => [`prices.${kind}`, shown])),
    },
    isFailed: isOurs(status),
  };
}

/**
 * Sends a trace of each request. Registered before all that asks the database: what is done after
 * this hook is done within the trace, also once a body was read.
 */
export function traced(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onRequest', (request, reply, done) => {
    const span = tracing.begin(request.headers, request.method);
    reply.raw.once('close', () => span.end(endedOf(request, reply)));
    span.within(done);
  });
}
