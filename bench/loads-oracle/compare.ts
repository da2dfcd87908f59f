import { isDeepStrictEqual } from 'node:util';
import type { CommandOutcome } from './runner.ts';
import { type DatabaseNames, plainOf } from './state.ts';

/** A difference between the two sides. */
export interface Difference {
  readonly what: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The JSON that a command printed; undefined for other output. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The places in lines such as `prices.csv:3: mid "x": reason (invalid_number)`. */
const placesOf = (text: string): string[] =>
  text.split('\n').flatMap((line) => {
    const found = /^([^\s:][^:]*):(\d+:)? .*\((\w+)\)$/.exec(line);
    if (!found) return [];
    const column = /^[^:]+:(?:\d+:)? ([^"]*)"/.exec(line)?.[1]?.trim() ?? '';
    return [`${found[1]}:${found[2] ?? ''} ${column} (${found[3]})`];
  });

/** Compares the results of a command on both sides; null if they are equivalent. */
export function outcomeDifference(
  [before, after]: readonly [CommandOutcome, CommandOutcome],
  [namesBefore, namesAfter]: readonly [DatabaseNames, DatabaseNames],
): Difference | null {
  if (before.exitCode !== after.exitCode) {
    const shown = ({ exitCode, stdout, stderr }: CommandOutcome) => ({ exitCode, stdout, stderr });
    return { what: 'exit code', before: shown(before), after: shown(after) };
  }
  const places = [before, after].map(({ stderr }) => placesOf(stderr));
  if (!isDeepStrictEqual(places[0], places[1])) {
    return { what: 'places in the errors', before: places[0], after: places[1] };
  }
  const json = [
    plainOf(jsonOf(before.stdout), namesBefore),
    plainOf(jsonOf(after.stdout), namesAfter),
  ];
  if (isDeepStrictEqual(json[0], json[1])) return null;
  return { what: 'the JSON on stdout', before: json[0], after: json[1] };
}

/** Normalizes readable output: without revisions, epochs, checksums and times. */
const wordingOf = ({ stdout }: CommandOutcome): string =>
  stdout
    .replace(/\b[0-9a-z]{12,40}\.(\d+)/g, 'revision $1')
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?\S*/g, 'now')
    .replace(/\b[0-9a-f]{64}\b/g, 'sum');

/** True if both outputs have the same wording; reported only, because wording may change. */
export const isSameWording = (before: CommandOutcome, after: CommandOutcome): boolean =>
  jsonOf(before.stdout) !== undefined || wordingOf(before) === wordingOf(after);

/** Compares lists of lines; null if they are equal. */
function linesDifference(
  what: string,
  before: readonly string[],
  after: readonly string[],
): Difference | null {
  if (isDeepStrictEqual(before, after)) return null;
  const [known, found] = [new Set(before), new Set(after)];
  const only = (lines: readonly string[], other: ReadonlySet<string>) =>
    lines.filter((line) => !other.has(line)).slice(0, 10);
  const parts = [only(before, found), only(after, known)] as const;
  const isOrder = parts.every((each) => each.length === 0);
  if (!isOrder) return { what, before: parts[0], after: parts[1] };
  return { what: `${what}: order or number of lines`, before: before.length, after: after.length };
}

type DatabaseContents = ReadonlyMap<string, readonly string[]>;

/** The columns of a table, by the members of its lines. */
const columnsOf = (lines: readonly string[]): string[] =>
  lines[0] === undefined ? [] : Object.keys(JSON.parse(lines[0]));

/** Compares the common columns of the common tables. */
export function stateDifference(
  before: DatabaseContents,
  after: DatabaseContents,
): Difference | null {
  for (const [table, lines] of before) {
    const other = after.get(table);
    if (other === undefined) continue;
    const columns = columnsOf(other);
    const shared = columnsOf(lines).filter((each) => columns.includes(each));
    const hasAll = lines.length === 0 || other.length === 0;
    const shown = (all: readonly string[]) =>
      hasAll ? all : all.map((line) => JSON.stringify(JSON.parse(line), shared));
    const difference = linesDifference(`table ${table}`, shown(lines), shown(other));
    if (difference) return difference;
  }
  return null;
}

/** A change of the feed without positions, epochs and times of the run. */
const changeOf = (text: string, names: DatabaseNames): string =>
  JSON.stringify(plainOf(JSON.parse(text), names));

/** Compares the feeds of both sides, change by change. */
export function feedDifference(
  [before, after]: readonly [readonly string[], readonly string[]],
  [namesBefore, namesAfter]: readonly [DatabaseNames, DatabaseNames],
): Difference | null {
  return linesDifference(
    'the change feed',
    before.map((each) => changeOf(each, namesBefore)),
    after.map((each) => changeOf(each, namesAfter)),
  );
}
