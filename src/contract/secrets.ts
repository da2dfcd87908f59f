import { shown, type Violation } from '../errors.ts';
import { holdsSecret } from '../secrets.ts';
import { escapePointer } from './pointer.ts';

const DETAIL =
  'Holds what looks like an API key or a token: send it in its header only, and revoke it if ' +
  'others have seen it';

/**
 * Notes where the values or the names of a request's members hold a credential: it would be in
 * answers, and in what the database logs. The pointer of a name is that of the object around it.
 * @param most how many are noted at most
 */
export function findSecrets(
  value: unknown,
  found: Violation[],
  most: number,
  pointer = '',
): Violation[] {
  if (found.length >= most) return found;
  const secret: Violation = { pointer, code: 'invalid_characters', detail: DETAIL };
  if (typeof value === 'string') {
    if (holdsSecret(value)) found.push(secret);
  } else if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value);
    if (members.some(([name]) => holdsSecret(name))) found.push(secret);
    for (const [name, each] of members) {
      findSecrets(each, found, most, `${pointer}/${escapePointer(shown(name))}`);
    }
  }
  return found;
}
