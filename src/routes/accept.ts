import type { FastifyRequest } from 'fastify';
import { Problem } from '../errors.ts';

/** The weight that an Accept header gives to a media type, by its most specific range. */
function weightOf(accept: string, type: string): number {
  const [group] = type.split('/', 1);
  const specificity = [type, `${group}/*`, '*/*'];
  let best = { rank: specificity.length, weight: 0 };
  for (const part of accept.split(',').slice(0, 64)) {
    const [range = '', ...parameters] = part.trim().toLowerCase().split(';');
    const rank = specificity.indexOf(range.trim());
    if (rank === -1 || rank > best.rank) continue;
    const quality = parameters.map((each) => /^\s*q=([\d.]+)\s*$/.exec(each)?.[1]).find(Boolean);
    best = { rank, weight: quality === undefined ? 1 : Number(quality) };
  }
  return best.weight;
}

/**
 * Refuses a request whose Accept header admits none of the types offered.
 * @throws Problem `not_acceptable`
 */
export function checkAccept(request: FastifyRequest, offered: readonly string[]): void {
  const accept = request.headers.accept;
  if (accept === undefined || accept.trim() === '') return;
  if (offered.some((type) => weightOf(accept, type) > 0)) return;
  throw new Problem('not_acceptable', `Accept ${offered.join(' or ')}`);
}
