import type { FastifyInstance, FastifyRequest } from 'fastify';
import { eitherOf, Problem } from '../../errors.ts';
import { pathOf } from '../problems.ts';
import { hasCredential } from './limit-requests.ts';

/** Methods by path, in the order of the routes. */
type MethodTable = Map<string, Set<string>>;

/** The decoded path. The router has already rejected invalid escapes. */
const routedPathOf = (request: FastifyRequest): string => decodeURI(pathOf(request.url));

/** The address of a market, or of its filters. */
const MARKET = /^\/v3\/prices\/[^/]+(\/filters)?\/?$/;

/** The 404 of an unknown address, with the list of markets or addresses. */
function notFound(request: FastifyRequest): Problem {
  const namesMarkets = MARKET.test(routedPathOf(request)) && hasCredential(request);
  const list = namesMarkets ? 'GET /v3/prices lists the markets' : '/docs lists the addresses';
  return new Problem('not_found', `There is nothing here; ${list}`);
}

function wrongMethod(allowed: ReadonlySet<string>): Problem {
  return new Problem('method_not_allowed', `Use ${eitherOf(allowed)} here`, {
    headers: { allow: [...allowed, 'OPTIONS'].join(', ') },
  });
}

/**
 * Distinguishes a wrong method (405 with `Allow`) from an unknown address (404); Fastify responds
 * 404 to both. `OPTIONS` on a known address returns its methods. Call it before routes are added.
 * @returns a function that throws the Problem of a request without a route
 */
export function methods(app: FastifyInstance): (request: FastifyRequest) => void {
  const table: MethodTable = new Map();
  const allowedOn = (request: FastifyRequest) => table.get(routedPathOf(request));
  const refusalOf = (request: FastifyRequest): Problem => {
    const allowed = allowedOn(request);
    return allowed ? wrongMethod(allowed) : notFound(request);
  };
  app.addHook('onRoute', ({ url, method }) => {
    // The route of @fastify/cors, which passes requests on to the handler below.
    if (url === '*') return;
    const known = table.get(url) ?? new Set<string>();
    for (const each of [method].flat()) known.add(each.toUpperCase());
    table.set(url, known);
  });
  app.setNotFoundHandler(async (request, reply) => {
    const allowed = allowedOn(request);
    if (!allowed) throw refusalOf(request);
    return reply
      .code(204)
      .header('allow', [...allowed, 'OPTIONS'].join(', '))
      .send();
  });
  return (request) => {
    if (request.is404 && request.method !== 'OPTIONS') throw refusalOf(request);
  };
}
