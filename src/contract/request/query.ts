import Type, { type TObject, type TSchema } from 'typebox';
import { nearest } from '../../catalog/nearest.ts';
import { quoted, VIOLATIONS_MAX, type Violation } from '../../errors.ts';
import { maskedEncoded } from '../../std/secrets.ts';
import { closed, word } from '../schemas/components.ts';
import { FORMAT_NAMES, type Format } from '../schemas/formats.ts';
import { type MarketSchemas, withItemRef } from '../schemas/market.ts';
import { type AddressNotation, OPTION_NAMES, optionOf } from '../schemas/options.ts';
import { escapePointer, parameterPointer } from '../schemas/problem.ts';
import { checkOf, isKnownFilter } from './validate.ts';

/*
 * The validation of requests. `validate.ts` checks a body by its schema and names every violation.
 * This file reads the query of a GET as the equivalent body.
 */

/** The query of an address: its parameters in the order of their first value, decoded. */
interface Query {
  readonly parameters: ReadonlyMap<string, readonly string[]>;
  readonly broken: readonly Violation[];
}

/** A query string as the equivalent request body. */
interface QueryRead {
  readonly body: {
    readonly filters: Readonly<Record<string, unknown>>;
    readonly options: Readonly<Record<string, unknown>>;
  };
  /** The requested format; null if the query has none. */
  readonly format: Format | null;
  readonly broken: readonly Violation[];
}

/** Decodes a text of a query; null for a broken percent escape or invalid UTF-8. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

/** The pointer of a parameter that matches no member of a body. */
const pointerOf = (name: string): string => `?${escapePointer(quoted(name))}`;

/** Reads the query of an address strictly: a decoding error is a violation, never a guess. */
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

/** A violation for each parameter of an address that takes none. */
const parametersRefused = (url: string, detailOf: (name: string) => string): Violation[] =>
  [...queryOf(url).parameters.keys()].slice(0, VIOLATIONS_MAX + 1).map((name) => ({
    pointer: pointerOf(name),
    code: 'unknown_field',
    detail: detailOf(quoted(name)),
  }));

/** A violation for each query parameter of a POST. */
export const strayParameters = (url: string): Violation[] =>
  parametersRefused(
    url,
    (name) => `POST takes filters and options in the body; move ${name} there, or use GET`,
  );

/** A violation for each query parameter of a GET without parameters. */
export const needlessParameters = (url: string): Violation[] =>
  parametersRefused(url, (name) => `This address takes no parameters; remove ${name}`);

/** The notation of values that a text cannot express. An invalid value stays a string. */
type Notation = Pick<AddressNotation, 'parse' | 'expected'>;

/** The notations by the type of a member. The table of options has those of objects. */
const NOTATIONS: Readonly<Record<string, Notation>> = {
  boolean: {
    parse: (text) => (text === 'true' ? true : text === 'false' ? false : text),
    expected: 'Must be the word true or false',
  },
  integer: {
    parse: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
    expected: 'Must be an integer',
  },
};

/** The options whose notation differs from that of a request body. */
const OWN_NOTATIONS: Readonly<Record<string, AddressNotation>> = Object.fromEntries(
  OPTION_NAMES.flatMap((name) => {
    const { address } = optionOf(name);
    return address === undefined ? [] : [[name, address]];
  }),
);

/** The type of a member, as its schema names it. */
const typeOf = (schema: TSchema | undefined): string => (schema as { type: string }).type;

/** The member of a request body that a parameter sets, and its type. */
interface QueryMember {
  readonly pointer: string;
  readonly type: string;
  /** Undefined for texts and lists of texts. */
  readonly notation: Notation | undefined;
}

/** A parameter in `filters` or `options` of a market's request body. */
interface BodyMember extends QueryMember {
  readonly part: 'filters' | 'options';
}

/** @throws Error for an object without a notation, at the start of the service */
function memberOf(pointer: string, name: string, schema: TSchema | undefined): QueryMember {
  const type = typeOf(schema);
  const notation = OWN_NOTATIONS[name] ?? NOTATIONS[type];
  if (type === 'object' && !notation) throw new Error(`${name} has no notation in an address`);
  return { pointer, type, notation };
}

/** The members of a market's body by their names, which no two of them share. */
function membersOf({ filters, options }: MarketSchemas): ReadonlyMap<string, BodyMember> {
  const members = (part: BodyMember['part'], { properties }: TObject) =>
    Object.entries(properties).map(
      ([name, schema]) => [name, { part, ...memberOf(`/${part}/${name}`, name, schema) }] as const,
    );
  return new Map([...members('filters', filters), ...members('options', options)]);
}

const FORMAT = 'format';

/** The parameters whose schema differs from that of a request body. */
const OWN_PARAMETERS: Readonly<Record<string, TSchema>> = {
  ...Object.fromEntries(
    Object.entries(OWN_NOTATIONS).map(([name, { schema }]) => [name, Type.Optional(schema)]),
  ),
  [FORMAT]: Type.Optional(
    word(FORMAT_NAMES, { description: 'Format of the response; overrides Accept' }),
  ),
};

/**
 * The parameters of `GET /v3/prices/<slug>`: every filter and option of the request body. A list
 * is a repeated parameter.
 */
export function parametersOf({ filters, options }: MarketSchemas): TObject {
  const members: Record<string, TSchema> = {};
  for (const [name, filter] of Object.entries(filters.properties)) {
    members[name] = Type.Optional(withItemRef(filter));
  }
  return closed({ ...members, ...options.properties, ...OWN_PARAMETERS });
}

/** The violation of an unknown parameter. */
function unknownParameter(name: string, legal: readonly string[]): Violation {
  const [near] = nearest(name, legal, 1);
  const hint = near ? `did you mean ${near}?` : `legal are ${legal.join(', ')}`;
  const detail = `There is no parameter ${quoted(name)}; ${hint}`;
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

/** The parsed value of a parameter; undefined after adding a violation to `broken`. */
function sentValue(
  { pointer, type, notation }: QueryMember,
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
  if (notation === undefined) return text;
  const value = notation.parse(text);
  if (typeof value !== 'string') return value;
  broken.push({ pointer, code: 'wrong_type', detail: notation.expected });
  return undefined;
}

/**
 * Compiles the query parser of a market. It returns the equivalent POST body, which is validated
 * like any other. It reports only violations that such a body cannot show: unknown parameters,
 * repetitions, and values of a wrong type.
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
      // The body check reports the filters of this market.
      else if (isKnownFilter(name)) body.filters[name] = values;
      // Violations beyond the limit are not listed.
      else if (broken.length <= VIOLATIONS_MAX) broken.push(unknownParameter(name, legal));
    }
    return { body, format, broken };
  };
}

/** The parameters of an address that belongs to no market, and their violations. */
export interface FlatQuery {
  readonly values: Readonly<Record<string, unknown>>;
  readonly errors: readonly Violation[];
}

interface Items {
  readonly items?: { readonly enum?: readonly string[] };
}

/** Adds the nearest legal value to the violation of an unknown list value. */
function withNearest(violation: Violation, { properties }: TObject, values: FlatQuery['values']) {
  const [, name = '', place] = violation.pointer.split('/');
  if (violation.code !== 'out_of_range' || place === undefined) return violation;
  const legal = (properties[name] as Items | undefined)?.items?.enum;
  const sent = (values[name] as readonly string[] | undefined)?.[Number(place)];
  const [near] = legal && sent !== undefined ? nearest(sent, legal, 1) : [];
  if (near === undefined || sent === undefined) return violation;
  return { ...violation, detail: `There is no ${name} ${quoted(sent)}; did you mean ${near}?` };
}

/** Compiles the query parser of an address without a market, from its schema. */
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
        // Violations beyond the limit are not listed.
        if (errors.length <= VIOLATIONS_MAX) errors.push(unknownParameter(name, legal));
        continue;
      }
      const member = memberOf(`/${name}`, name, schema.properties[name]);
      const value = sentValue(member, name, sent, errors);
      if (value !== undefined) values[name] = value;
    }
    for (const name of needed) {
      const pointer = `/${name}`;
      const isReported = errors.some((each) => parameterPointer(each.pointer) === `?${name}`);
      if (query.parameters.has(name) || isReported) continue;
      errors.push({ pointer, code: 'too_few_items', detail: `Give ${name}; it is required` });
    }
    // Missing parameters were reported above.
    const wrong = check(values).filter(({ pointer }) => pointer !== '');
    return {
      values,
      errors: [...errors, ...wrong.map((each) => withNearest(each, schema, values))],
    };
  };
}
