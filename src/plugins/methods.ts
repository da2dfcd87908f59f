import type { FastifyInstance, FastifyRequest } from 'fastify';
import { nearest } from '../catalog/nearest.ts';
import { eitherOf, Problem } from '../errors.ts';
import { pathOf } from './path.ts';

/** Paths and the methods that each takes, in the order of their routes. */
type Table = Map<string, Set<string>>;

/** The path as the router reads it. One with a broken escape never gets here. */
const routedPathOf = (request: FastifyRequest): string => decodeURI(pathOf(request.url));

/** The refusal of an address that there is not: the nearest one beside it, when one is near. */
function nowhere(path: string, table: Table): Problem {
  const bare = path.endsWith('/') ? path.slice(0, -1) : path;
  const folder = bare.slice(0, bare.lastIndexOf('/') + 1);
  const beside = [...table.keys()]
    .filter((each) => each.startsWith(folder))
    .map((each) => each.slice(folder.length))
    .filter((each) => /^[\w.-]+$/.test(each));
  const [name] = nearest(bare.slice(folder.length), beside, 1);
  const hint = name === undefined ? '/docs lists the addresses' : `did you mean ${folder}${name}?`;
  return new Problem('not_found', `There is nothing here; ${hint}`);
}

function wrongMethod(allowed: ReadonlySet<string>): Problem {
  return new Problem('method_not_allowed', `Use ${eitherOf(allowed)} here`, {
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
  const refusalOf = (request: FastifyRequest): Problem => {
    const allowed = allowedOn(request);
    return allowed ? wrongMethod(allowed) : nowhere(routedPathOf(request), table);
  };
  app.addHook('onRoute', ({ url, method }) => {
    const known = table.get(url) ?? new Set<string>();
    for (const each of [method].flat()) known.add(each.toUpperCase());
    table.set(url, known);
  });
  // Before the body: what is wrong with it does not matter where nobody would read it.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.is404 && request.method !== 'OPTIONS') throw refusalOf(request);
    done(null, payload);
  });
  app.setNotFoundHandler(async (request, reply) => {
    const allowed = allowedOn(request);
    if (!allowed) throw refusalOf(request);
    return reply
      .code(204)
      .header('allow', [...allowed, 'OPTIONS'].join(', '))
      .send();
  });
}
