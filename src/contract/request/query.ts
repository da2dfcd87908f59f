import type { TObject, TSchema } from 'typebox';
import { nearest } from '../../catalog/nearest.ts';
import { shown, type Violation } from '../../errors.ts';
import { maskedEncoded } from '../../std/secrets.ts';
import { FORMAT_NAMES, type Format } from '../schemas/formats.ts';
import type { MarketSchemas } from '../schemas/market.ts';
import { escapePointer, parameterPointer } from '../schemas/problem.ts';
import { checkOf, isKnownFilter, VIOLATIONS_MAX } from './validate.ts';

/** The query of an address: its parameters in the order of their first value, decoded. */
interface Query {
  readonly parameters: ReadonlyMap<string, readonly string[]>;
  readonly broken: readonly Violation[];
}

/** A request that came as a query, as the body that says the same. */
interface QueryRead {
  readonly body: {
    readonly filters: Readonly<Record<string, unknown>>;
    readonly options: Readonly<Record<string, unknown>>;
  };
  /** The format that was asked for; null where the query says none. */
  readonly format: Format | null;
  readonly broken: readonly Violation[];
}

/** A text of a query decoded; null where a percent escape is broken, or its bytes no UTF-8. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

/** The place of a parameter that stands for no member of a body. */
const pointerOf = (name: string): string => `?${escapePointer(shown(name))}`;

/** Reads the query of an address, strictly: what cannot be decoded is told, never guessed. */
export function queryOf(url: string): Query {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const parameters = new Map<string, string[]>();
  const broken: Violation[] = [];
  for (const part of query.split('&').filter((each) => each !== '')) {
    const end = part.indexOf('=');
    const name = end < 0 ? part : part.slice(0, end);
    const value = end < 0 ? '' : part.slice(end + 1);
    const [key, text] = [decoded(name), decoded(value)];
    if (broken.length > VIOLATIONS_MAX) break;
    if (key === null || text === null) {
      const detail = 'Holds a broken percent escape; write a percent sign as %25, texts in UTF-8';
      broken.push({
        pointer: pointerOf(key ?? maskedEncoded(name)),
        code: 'invalid_format',
        detail,
      });
    } else if (!parameters.get(key)?.push(text)) parameters.set(key, [text]);
  }
  return { parameters, broken };
}

/** What is wrong with each parameter of an address that takes none, as a sentence tells. */
const parametersRefused = (url: string, detailOf: (name: string) => string): Violation[] =>
  [...queryOf(url).parameters.keys()].slice(0, VIOLATIONS_MAX + 1).map((name) => ({
    pointer: pointerOf(name),
    code: 'unknown_field',
    detail: detailOf(shown(name)),
  }));

/** What is wrong with each parameter of a POST. */
export const strayParameters = (url: string): Violation[] =>
  parametersRefused(
    url,
    (name) => `POST takes filters and options in the body; move ${name} there, or use GET`,
  );

/** What is wrong with each parameter of a GET that has nothing to choose from. */
export const needlessParameters = (url: string): Violation[] =>
  parametersRefused(url, (name) => `This address takes no parameters; leave out ${name}`);

/** A single text as the value of a member; what is no such value keeps its text. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  integer: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
  object: (text) => {
    const [period, method, ...more] = text.split(':');
    return method === undefined || more.length > 0 ? text : { period, method };
  },
};

/** How values are written that an address cannot say in their own type. */
const WRITTEN: Readonly<Record<string, string>> = {
  boolean: 'Must be the word true or false',
  integer: 'Must be an integer',
  object: 'Must be a period and a method, such as month:average',
};

/** The type of a member, as its schema names it. */
const typeOf = (schema: TSchema | undefined): string => (schema as { type: string }).type;

/** What a parameter stands for, and what it may be there. */
interface Member {
  readonly pointer: string;
  readonly type: string;
}

/** Where a parameter belongs in a body. */
interface BodyMember extends Member {
  readonly part: 'filters' | 'options';
}

/** The members of a market's body by their names, which no two of them share. */
function membersOf({ filters, options }: MarketSchemas): ReadonlyMap<string, BodyMember> {
  const members = (part: BodyMember['part'], { properties }: TObject) =>
    Object.entries(properties).map(
      ([name, schema]) =>
        [name, { part, pointer: `/${part}/${name}`, type: typeOf(schema) }] as const,
    );
  return new Map([...members('filters', filters), ...members('options', options)]);
}

const FORMAT = 'format';

/** What is wrong with a parameter that an address does not have. */
function unknownParameter(name: string, legal: readonly string[]): Violation {
  const [near] = nearest(name, legal, 1);
  const hint = near ? `did you mean ${near}?` : `legal are ${legal.join(', ')}`;
  const detail = `There is no parameter ${shown(name)}; ${hint}`;
  return { pointer: pointerOf(name), code: 'unknown_field', detail };
}

const once = (pointer: string, name: string): Violation => ({
  pointer,
  code: 'too_many_items',
  detail: `Give ${name} once`,
});

function formatIn(values: readonly string[], broken: Violation[]): Format {
  const pointer = pointerOf(FORMAT);
  if (values.length > 1) broken.push(once(pointer, FORMAT));
  const format = FORMAT_NAMES.find((each) => each === values[0]);
  if (format === undefined) {
    const detail = `Must be one of ${FORMAT_NAMES.join(', ')}`;
    broken.push({ pointer, code: 'out_of_range', detail });
  }
  return format ?? 'json';
}

/** The value of a parameter as its member has it; undefined where it was told to be broken. */
function sentValue(
  { pointer, type }: Member,
  name: string,
  values: readonly string[],
  broken: Violation[],
): unknown {
  if (type === 'array') return values;
  const [text = '', ...more] = values;
  if (more.length > 0) {
    broken.push(once(pointer, name));
    return undefined;
  }
  const value = READERS[type]?.(text) ?? text;
  const written = WRITTEN[type];
  if (written === undefined || typeof value !== 'string') return value;
  broken.push({ pointer, code: 'wrong_type', detail: written });
  return undefined;
}

/**
 * How a market reads a query: to the body that a POST would have, which is then checked as any
 * other. Told here is only what such a body could not show: strangers, repetitions, and values
 * that are not of the type of their member.
 */
export function queryReader(schemas: MarketSchemas): (url: string) => QueryRead {
  const members = membersOf(schemas);
  const legal = [...members.keys(), FORMAT];
  return (url) => {
    const query = queryOf(url);
    const broken = [...query.broken];
    const body: Record<BodyMember['part'], Record<string, unknown>> = { filters: {}, options: {} };
    let format: Format | null = null;
    for (const [name, values] of query.parameters) {
      const member = members.get(name);
      if (member) {
        const value = sentValue(member, name, values, broken);
        if (value !== undefined) body[member.part][name] = value;
      } else if (name === FORMAT) format = formatIn(values, broken);
      // The check of the body tells which filters this market has.
      else if (isKnownFilter(name)) body.filters[name] = values;
      // Past the limit they are no longer named.
      else if (broken.length <= VIOLATIONS_MAX) broken.push(unknownParameter(name, legal));
    }
    return { body, format, broken };
  };
}

/** The parameters of an address that is of no market, and all that is wrong with them. */
export interface FlatQuery {
  readonly values: Readonly<Record<string, unknown>>;
  readonly errors: readonly Violation[];
}

interface Items {
  readonly items?: { readonly enum?: readonly string[] };
}

/** Adds the nearest legal word to the violation of an unknown word of a list. */
function withNearest(violation: Violation, { properties }: TObject, values: FlatQuery['values']) {
  const [, name = '', place] = violation.pointer.split('/');
  if (violation.code !== 'out_of_range' || place === undefined) return violation;
  const legal = (properties[name] as Items | undefined)?.items?.enum;
  const sent = (values[name] as readonly string[] | undefined)?.[Number(place)];
  const [near] = legal && sent !== undefined ? nearest(sent, legal, 1) : [];
  if (near === undefined || sent === undefined) return violation;
  return { ...violation, detail: `There is no ${name} ${shown(sent)}; did you mean ${near}?` };
}

/** Reads the query of an address strictly against a schema, as those of markets are read. */
export function flatReader(schema: TObject): (url: string) => FlatQuery {
  const check = checkOf(schema);
  const legal = Object.keys(schema.properties);
  const needed = schema.required ?? [];
  return (url) => {
    const query = queryOf(url);
    const errors = [...query.broken];
    const values: Record<string, unknown> = {};
    for (const [name, sent] of query.parameters) {
      if (!legal.includes(name)) {
        // Past the limit they are no longer named.
        if (errors.length <= VIOLATIONS_MAX) errors.push(unknownParameter(name, legal));
        continue;
      }
      const member = { pointer: `/${name}`, type: typeOf(schema.properties[name]) };
      const value = sentValue(member, name, sent, errors);
      if (value !== undefined) values[name] = value;
    }
    for (const name of needed) {
      const pointer = `/${name}`;
      const isTold = errors.some((each) => parameterPointer(each.pointer) === `?${name}`);
      if (query.parameters.has(name) || isTold) continue;
      errors.push({ pointer, code: 'too_few_items', detail: `Give ${name}; it is needed` });
    }
    // Missing parameters were reported above.
    const wrong = check(values).filter(({ pointer }) => pointer !== '');
    return {
      values,
      errors: [...errors, ...wrong.map((each) => withNearest(each, schema, values))],
    };
  };
}
