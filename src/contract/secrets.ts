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
 * @param path the names that lead to the value; as it was when the call is over
 */
export function findSecrets(
  value: unknown,
  found: Violation[],
  most: number,
  path: (string | number)[] = [],
): Violation[] {
  if (found.length >= most) return found;
  if (typeof value === 'string') {
    if (holdsSecret(value)) found.push(secretAt(path));
  } else if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) findIn(at, each, found, most, path);
  } else if (typeof value === 'object' && value !== null) {
    const names = Object.keys(value);
    if (names.some(holdsSecret)) found.push(secretAt(path));
    const members = value as Readonly<Record<string, unknown>>;
    for (const name of names) findIn(name, members[name], found, most, path);
  }
  return found;
}

function findIn(
  name: string | number,
  value: unknown,
  found: Violation[],
  most: number,
  path: (string | number)[],
): void {
  path.push(name);
  findSecrets(value, found, most, path);
  path.pop();
}

/** Its pointer is put together here, as there are thousands of places and hardly ever a secret. */
function secretAt(path: readonly (string | number)[]): Violation {
  const pointer = path.map((name) => `/${escapePointer(shown(String(name)))}`).join('');
  return { pointer, code: 'invalid_characters', detail: DETAIL };
}
