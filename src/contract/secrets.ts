import type { Violation } from '../errors.ts';
import { holdsSecret } from '../secrets.ts';

const DETAIL =
  'Holds what looks like an API key or a token: send it in its header only, and revoke it if ' +
  'others have seen it';

/**
 * Where the values or the names of a request's members hold a credential: it would be in answers,
 * and in what the database logs. The pointer of a name is that of the object around it.
 */
export function secretsIn(value: unknown, pointer = ''): Violation[] {
  const found: Violation = { pointer, code: 'invalid_characters', detail: DETAIL };
  if (typeof value === 'string') return holdsSecret(value) ? [found] : [];
  if (typeof value !== 'object' || value === null) return [];
  const members = Object.entries(value);
  if (members.some(([name]) => holdsSecret(name))) return [found];
  return members.flatMap(([name, each]) => secretsIn(each, `${pointer}/${name}`));
}
