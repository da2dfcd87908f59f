import type { FastifyInstance, FastifyRequest } from 'fastify';
import { nearest } from '../../catalog/nearest.ts';
import { eitherOf, Problem } from '../../errors.ts';
import { pathOf } from '../problems.ts';

/** Paths and the methods that each takes, in the order of their routes. */
type Table = Map<string, Set<string>>;

/** The path as the router reads it. One with a broken escape never gets here. */
const routedPathOf = (request: FastifyRequest): string => decodeURI(pathOf(request.url));

const partsOf = (path: string): string[] => path.replace(/\/$/, '').split('/').slice(1);

/** A part of an address that there is, else the nearest; a version such as v2 is not misspelt. */
const meant = (part: string, known: readonly string[]): string | undefined =>
  known.includes(part) || part.length < 3 ? part : nearest(part, known, 1)[0];

/** The address that was nearly asked for, part by part; null when none is near. */
function nearestAddress(path: string, table: Table): string | null {
  const asked = partsOf(path);
  let near = [...table.keys()]
    .filter((each) => /^(\/[\w.-]+)+$/.test(each))
    .map(partsOf)
    .filter(({ length }) => length === asked.length);
  for (const [place, part] of asked.entries()) {
    const known = near.map((each) => each[place] ?? '');
    const wanted = meant(part, known);
    near = near.filter((each) => each[place] === wanted);
  }
  return near[0] === undefined ? null : `/${near[0].join('/')}`;
}

/** The refusal of an address that there is not, with one that is near. */
function nowhere(path: string, table: Table): Problem {
  const near = nearestAddress(path, table);
  const hint = near === null ? '/docs lists the addresses' : `did you mean ${near}?`;
  return new Problem('not_found', `There is nothing here; ${hint}`);
}

function wrongMethod(allowed: ReadonlySet<string>): Problem {
  return new Problem('method_not_allowed', `Use ${eitherOf(allowed)} here`, {
    headers: { allow: [...allowed, 'OPTIONS'].join(', ') },
  });
}

/**
 * Tells a wrong method (405 with `Allow`) from a wrong address (404); Fastify has one answer for
 * both. `OPTIONS` on a known address says what it takes. Call before the routes.
 * @returns refuses a request for which there is no route
 */
export function methods(app: FastifyInstance): (request: FastifyRequest) => void {
  const table: Table = new Map();
  const allowedOn = (request: FastifyRequest) => table.get(routedPathOf(request));
  const refusalOf = (request: FastifyRequest): Problem => {
    const allowed = allowedOn(request);
    return allowed ? wrongMethod(allowed) : nowhere(routedPathOf(request), table);
  };
  app.addHook('onRoute', ({ url, method }) => {
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
