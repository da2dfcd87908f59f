import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../errors.ts';
import { pathOf } from './path.ts';

/** Paths and the methods that each takes, in the order of their routes. */
type Table = Map<string, Set<string>>;

/** The path as the router reads it. One with a broken escape never gets here. */
const routedPathOf = (request: FastifyRequest): string => decodeURI(pathOf(request.url));

function refusalOf(allowed: ReadonlySet<string> | undefined): Problem {
  if (!allowed) return new Problem('not_found', 'There is nothing here; /docs lists the addresses');
  return new Problem('method_not_allowed', `Use ${[...allowed].join(' or ')} here`, {
    headers: { allow: [...allowed, 'OPTIONS'].join(', ') },
  });
}

/**
 * Tells a wrong method (405 with `Allow`) from a wrong address (404); Fastify has one answer for
 * both. `OPTIONS` on a known address says what it takes. Register before the routes.
 */
export function methods(app: FastifyInstance): void {
  const table: Table = new Map();
  const allowedOn = (request: FastifyRequest) => table.get(routedPathOf(request));
  app.addHook('onRoute', ({ url, method }) => {
    const known = table.get(url) ?? new Set<string>();
    for (const each of [method].flat()) known.add(each.toUpperCase());
    table.set(url, known);
  });
  // Before the body: what is wrong with it does not matter where nobody would read it.
  app.addHook('preParsing', async (request) => {
    if (request.is404 && request.method !== 'OPTIONS') throw refusalOf(allowedOn(request));
  });
  app.setNotFoundHandler(async (request, reply) => {
    const allowed = allowedOn(request);
    if (!allowed) throw refusalOf(allowed);
    return reply
      .code(204)
      .header('allow', [...allowed, 'OPTIONS'].join(', '))
      .send();
  });
}
