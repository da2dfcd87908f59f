import { didYouMean } from '../../catalog/nearest.ts';
import { writtenOut } from '../parsing/decimals.ts';
import {
  JsonError,
  JsonNumber,
  type JsonObject,
  type JsonValue,
  readJson,
} from '../parsing/exact-json.ts';
import { lineBlocks } from '../parsing/lines.ts';
import type { FileFormat, ReadContext } from '../records/format.ts';
import { type LoadErrorCode, Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import {
  ATTRIBUTES,
  JSON_ATTRIBUTES,
  POINT_FIELDS,
  type SourceRecord,
} from '../records/source-record.ts';

const PRODUCT_FIELDS = ['market', 'name', 'alias', 'chemicalCode', 'isSustainable'];
const VALUE_FIELDS = ['dimension', 'name'];

/** An invalid member of a record; the caller adds the line. */
class MemberError extends Error {
  readonly code: LoadErrorCode;
  readonly column: string;
  readonly value: string | null;

  constructor(code: LoadErrorCode, column: string, message: string, value: string | null = null) {
    super(message);
    this.code = code;
    this.column = column;
    this.value = value;
  }
}

function checkMembers(object: JsonObject, known: readonly string[]): void {
  for (const name of object.keys()) {
    if (known.includes(name)) continue;
    const message = `There is no member of this name${didYouMean(name, known)}`;
    throw new MemberError('unknown_member', name, message, name);
  }
}

function textOf(object: JsonObject, name: string): string | null {
  const value = object.get(name) ?? null;
  if (value === null || typeof value === 'string') return value;
  throw new MemberError('wrong_type', name, `The member ${name} must be a text`);
}

function neededText(object: JsonObject, name: string): string {
  const text = textOf(object, name);
  if (text) return text;
  throw new MemberError('missing_value', name, `The member ${name} is missing`);
}

/** A decimal, written as a number or as text. */
function decimalOf(object: JsonObject, name: string): string | null {
  const value = object.get(name) ?? null;
  if (value === null || typeof value === 'string') return value || null;
  if (value instanceof JsonNumber) return writtenOut(value.text) ?? value.text;
  throw new MemberError('wrong_type', name, `The member ${name} must be a number`);
}

/** The JSON text of a value, with original digits. */
function jsonText(value: JsonValue): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  if (!(value instanceof Map)) return JSON.stringify(value);
  const members = [...value].map(([name, each]) => `${JSON.stringify(name)}:${jsonText(each)}`);
  return `{${members.join(',')}}`;
}

function priceOf(line: number, object: JsonObject): SourceRecord {
  checkMembers(object, ['code', ...ATTRIBUTES]);
  const attributes: Record<string, string | null> = {};
  for (const name of ATTRIBUTES) {
    const value = object.get(name);
    if (value === undefined) continue;
    attributes[name] =
      JSON_ATTRIBUTES.includes(name) && value !== null ? jsonText(value) : textOf(object, name);
  }
  const code = neededText(object, 'code');
  return { kind: 'price', line, code, attributes, whenPresent: 'compare' };
}

function productOf(line: number, object: JsonObject): SourceRecord {
  checkMembers(object, PRODUCT_FIELDS);
  const isSustainable = object.get('isSustainable');
  if (typeof isSustainable !== 'boolean') {
    throw new MemberError('wrong_type', 'isSustainable', 'isSustainable must be true or false');
  }
  return {
    kind: 'product',
    line,
    market: neededText(object, 'market'),
    name: neededText(object, 'name'),
    alias: neededText(object, 'alias'),
    chemicalCode: neededText(object, 'chemicalCode'),
    isSustainable,
  };
}

function dimensionValueOf(line: number, object: JsonObject): SourceRecord {
  checkMembers(object, VALUE_FIELDS);
  const dimension = neededText(object, 'dimension');
  return { kind: 'value', line, dimension, name: neededText(object, 'name') };
}

function pointOf(line: number, object: JsonObject): SourceRecord {
  checkMembers(object, POINT_FIELDS);
  return {
    kind: 'point',
    line,
    code: neededText(object, 'code'),
    date: neededText(object, 'date'),
    low: decimalOf(object, 'low'),
    mid: decimalOf(object, 'mid'),
    high: decimalOf(object, 'high'),
    publishedAt: textOf(object, 'publishedAt') || null,
  };
}

/** A map, because an object would also have inherited names such as `constructor`. */
const READERS = new Map([
  ['price', priceOf],
  ['product', productOf],
  ['value', dimensionValueOf],
]);

/**
 * Parses the record of one line: a point, or a description wrapped in a member that names its kind.
 */
function recordOf(line: number, text: string): SourceRecord {
  const object = readJson(text);
  if (!(object instanceof Map)) throw new JsonError('the line is not an object');
  const [wrapper = ''] = object.keys();
  const reader = READERS.get(wrapper);
  const inner = object.get(wrapper);
  if (!reader) {
    if (object.size === 1) checkMembers(object, [...POINT_FIELDS, ...READERS.keys()]);
    return pointOf(line, object);
  }
  checkMembers(object, [wrapper]);
  if (inner instanceof Map) return reader(line, inner);
  throw new MemberError('wrong_type', wrapper, `The member ${wrapper} must be an object`);
}

function reject(error: unknown, line: number, text: string, problems: Problems): void {
  if (error instanceof MemberError) {
    const { code, column, value, message } = error;
    problems.reject(code, message, { line, column, value });
  } else if (error instanceof JsonError) {
    problems.reject('invalid_json', `Not JSON: ${error.message}`, { line, value: text });
  } else throw error;
}

/** Reads the service's own NDJSON format, described in `docs/loading.md`. */
async function* read({ file, problems }: ReadContext): AsyncGenerator<SourceRecord[]> {
  for await (const { first, lines } of lineBlocks(file.bytes(), problems)) {
    const records: SourceRecord[] = [];
    for (const [index, text] of lines.entries()) {
      if (text === null || text === '' || text.trim() === '') continue;
      try {
        records.push(recordOf(first + index, text));
      } catch (error) {
        reject(error, first + index, text, problems);
        if (first + index === 1 && text.trim() === '[') throw wholeArray();
      }
    }
    yield records;
  }
}

const wholeArray = (): Refusal =>
  new Refusal('invalid_json', 'The file is one JSON array: write one object a line', { line: 1 });

export const ndjson: FileFormat = {
  lineage: ['csv', 'ndjson', 'table'],
  needsVintage: false,
  read,
};
