import { readFileSync } from 'node:fs';
import { distance } from 'fastest-levenshtein';
import { ConfigError } from './config.ts';
import { REMOVED_SETTINGS, SETTINGS } from './settings.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Variables that may contain a secret. Each can be read from the file `<name>_FILE` instead. */
export const SECRETS = [
  'DATABASE_URL',
  'USAGE_DATABASE_URL',
  'PGPASSWORD',
  'USAGE_PGPASSWORD',
  'JWT_SECRET',
] as const;

/** Passwords of accounts. Their files are read again for each connection, as passwords change. */
export const REREAD: readonly string[] = ['PGPASSWORD', 'USAGE_PGPASSWORD'];

/** Variables that contain a secret of a client of the service. They have files too. */
export const CLIENT_SECRETS = ['COMMODITY_PRICES_KEY', 'COMMODITY_PRICES_TOKEN'] as const;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this account may not read it',
  EISDIR: 'it is a folder',
};

/** Reads a secret from a file, without the final line end. @throws ConfigError */
export function readSecret(name: string, path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${name}: cannot read ${path}: ${REASONS[code] ?? message}`);
  }
  if (text === '') throw new ConfigError(`${name}: ${path} is empty`);
  if (/[\r\n\0]/.test(text)) throw new ConfigError(`${name}: ${path} has more than one line`);
  return text;
}

/** Secrets from files by variable name, and one line for each unusable file. */
interface SecretFiles {
  readonly secrets: ReadonlyMap<string, string>;
  readonly faults: readonly string[];
}

/**
 * Reads the secrets with a file in the environment. An empty value counts as not set.
 * @param names the variables, by default those of the service
 */
export function secretsFromFiles(env: Env, names: readonly string[] = SECRETS): SecretFiles {
  const secrets = new Map<string, string>();
  const faults: string[] = [];
  for (const name of names) {
    const path = env[`${name}_FILE`];
    if (!path) continue;
    try {
      if (env[name]) throw new ConfigError(`${name}_FILE: set only one of ${name}_FILE, ${name}`);
      secrets.set(name, readSecret(`${name}_FILE`, path));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.push(...error.lines);
    }
  }
  return { secrets, faults };
}

const NAMES = [...Object.keys(SETTINGS), ...SECRETS.map((each) => `${each}_FILE`)];

/** Most wrong letters of a misspelt name. Few, so that variables of other programs do not match. */
const editsMax = (name: string): number => Math.max(1, Math.floor((name.length + 1) / 5));

const lettersOf = (name: string): string => [...name].sort().join('');

/** The edit distance of two names; a transposition counts as one edit. */
function editsOf(given: string, meant: string): number {
  const edits = distance(given, meant);
  return edits === 2 && lettersOf(given) === lettersOf(meant) ? 1 : edits;
}

/** A variable that is not a setting, and the setting with a similar name. */
interface Misspelt {
  readonly given: string;
  readonly meant: string;
}

/** One line about a variable with a misspelt name. */
export const misspeltText = ({ given, meant }: Misspelt): string =>
  `${given} is not a setting of the service; did you mean ${meant}?`;

/** Finds variables with a value whose names are similar to those of settings. */
export function misspeltSettings(env: Readonly<Record<string, string | undefined>>): Misspelt[] {
  // A removed setting is reported by its own name.
  const isOther = (each: string) => !NAMES.includes(each) && !(each in REMOVED_SETTINGS);
  const others = Object.keys(env).filter((each) => env[each] && isOther(each));
  return others.sort().flatMap((given) => {
    const name = given.toUpperCase();
    const scored = NAMES.map((meant) => ({ meant, edits: editsOf(name, meant) }));
    const near = scored.filter(({ meant, edits }) => edits <= editsMax(meant));
    const [best] = near.sort((a, b) => a.edits - b.edits);
    return best === undefined ? [] : [{ given, meant: best.meant }];
  });
}
