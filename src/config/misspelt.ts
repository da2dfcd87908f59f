import { distance } from 'fastest-levenshtein';
import { SECRETS } from './secret-files.ts';
import { SETTINGS } from './settings.ts';

const NAMES = [...Object.keys(SETTINGS), ...SECRETS.map((each) => `${each}_FILE`)];

/** How many letters may be wrong: of a short name one, else it would be another program's. */
const editsMax = (name: string): number => Math.max(1, Math.floor((name.length + 1) / 5));

const lettersOf = (name: string): string => [...name].sort().join('');

/** How many letters are wrong; two that changed places count as one. */
function editsOf(given: string, meant: string): number {
  const edits = distance(given, meant);
  return edits === 2 && lettersOf(given) === lettersOf(meant) ? 1 : edits;
}

/** A variable that is no setting, and the one that it is nearly called. */
interface Misspelt {
  readonly given: string;
  readonly meant: string;
}

/** Variables of an environment that have a value and nearly the name of a setting. */
export function misspeltSettings(env: Readonly<Record<string, string | undefined>>): Misspelt[] {
  const others = Object.keys(env).filter((each) => env[each] && !NAMES.includes(each));
  return others.sort().flatMap((given) => {
    const name = given.toUpperCase();
    const scored = NAMES.map((meant) => ({ meant, edits: editsOf(name, meant) }));
    const near = scored.filter(({ meant, edits }) => edits <= editsMax(meant));
    const [best] = near.sort((a, b) => a.edits - b.edits);
    return best === undefined ? [] : [{ given, meant: best.meant }];
  });
}
