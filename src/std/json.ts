import { isUtf8 } from 'node:buffer';

/** A text is no strict JSON; the message is a predicate, such as "is not valid JSON". */
export class JsonError extends Error {}

const BOM = 0xfeff;

/** Structure of a JSON text before parsing; strings are skipped. */
interface Outline {
  /** Number of member names, including duplicates. */
  readonly names: number;
  /** Maximum nesting of objects and lists. */
  readonly depth: number;
}

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

function outlineOf(bytes: Buffer): Outline {
  let [names, depth, open] = [0, 0, 0];
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) isText = !isText;
    else if (isText) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === COLON) names += 1;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      open += 1;
      depth = Math.max(depth, open);
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) open -= 1;
  }
  return { names, depth };
}

/** Number of members in a parsed value, nested ones included. */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.reduce<number>(
    (sum, each) => sum + membersIn(each),
    Array.isArray(value) ? 0 : inner.length,
  );
}

/**
 * Parses a JSON text of a client strictly: a text must have one meaning. JSON.parse replaces
 * invalid UTF-8, and uses the last of duplicate members where other parsers use the first.
 * @param depthMax maximum nesting, checked before parsing
 * @param checkNames called before parsing with the number of member names; throws to reject it
 * @throws JsonError
 */
export function parseJson(
  bytes: Buffer,
  depthMax: number,
  checkNames: (names: number) => void = () => {},
): unknown {
  // Decoding would replace invalid sequences silently.
  if (!isUtf8(bytes)) throw new JsonError('is not valid UTF-8');
  const text = bytes.toString('utf8');
  if (text.charCodeAt(0) === BOM)
    throw new JsonError('begins with a byte-order mark; leave it out');
  const { names, depth } = outlineOf(bytes);
  if (depth > depthMax) throw new JsonError(`is nested deeper than ${depthMax} levels`);
  checkNames(names);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new JsonError('is not valid JSON');
  }
  if (membersIn(value) < names) throw new JsonError('names one member twice; name each once');
  return value;
}
