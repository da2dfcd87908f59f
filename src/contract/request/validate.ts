import Type, { type TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { BASE_FILTERS, DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import { Names } from '../../catalog/nearest.ts';
import { quoted, VIOLATIONS_MAX, type Violation, type ViolationCode } from '../../errors.ts';
import { closed } from '../schemas/components.ts';
import { filtersOf, type MarketSchemas } from '../schemas/market.ts';
import { OPTION_NAMES, optionOf } from '../schemas/options.ts';
import { escapePointer } from '../schemas/problem.ts';

// TypeBox stops at 8 errors by default, but a response reports all violations.
Settings.Set({ maxErrors: 4 * VIOLATIONS_MAX });

interface RequestSchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  /** Each keyword has one of them. */
  readonly params: {
    readonly type: unknown;
    readonly limit: number;
    readonly allowedValues: readonly string[];
    readonly requiredProperties: readonly string[];
  };
}

/** The legal member names of an object. */
interface LegalNames {
  readonly names: readonly string[];
  readonly suggestions: Names;
  /** Null outside the request body of a market. */
  readonly body: MarketBody | null;
}

/** The request body of a market. */
interface MarketBody {
  readonly market: Market;
  /** The object that each filter and option is a member of. */
  readonly places: ReadonlyMap<string, 'filters' | 'options'>;
  /** Finds the names of `places`. */
  readonly suggestions: Names;
}

const KNOWN_FILTERS = new Set<string>([...Object.keys(BASE_FILTERS), ...Object.keys(DIMENSIONS)]);

/** True if some market has a filter of this name. */
export const isKnownFilter = (name: string): boolean => KNOWN_FILTERS.has(name);

function unknownMember(parent: string, name: string, legal: LegalNames): Violation {
  const pointer = `${parent}/${escapePointer(quoted(name))}`;
  const { body } = legal;
  if (body && parent === '/filters' && isKnownFilter(name)) {
    const filters = filtersOf(body.market).join(', ');
    const detail = `${body.market.slug} has no filter ${name}; it takes codes, ${filters}`;
    return { pointer, code: 'unsupported_filter', detail };
  }
  const place = body?.places.get(name);
  if (place) {
    const detail = `There is no member ${name} here; put it into ${place}`;
    return { pointer, code: 'unknown_field', detail };
  }
  const [near] = legal.suggestions.nearest(name, 1);
  const [other] = near ? [] : (body?.suggestions.nearest(name, 1) ?? []);
  const meant = other ? `${other} in ${body?.places.get(other)}` : near;
  const hint = meant ? `did you mean ${meant}?` : `legal are ${legal.names.join(', ')}`;
  return { pointer, code: 'unknown_field', detail: `There is no member ${quoted(name)}; ${hint}` };
}

const DAY_FORM = 'Must be a real calendar day, written YYYY-MM-DD';

/** Messages for strings of a fixed format, by pointer. */
const FORMS: Readonly<Record<string, string>> = {
  '/filters/dateFrom': DAY_FORM,
  '/filters/dateTo': DAY_FORM,
  '/from': DAY_FORM,
  '/to': DAY_FORM,
  '/after': 'Must be a position of nextSeq or seq, latest, or revision: and a revision',
  '/since': optionOf('asOf').form ?? '',
  '/base': 'Must be an ISO 4217 code of three letters',
  '/quote': 'Must be an ISO 4217 code of three letters',
  ...Object.fromEntries(
    OPTION_NAMES.flatMap((name) => {
      const { form } = optionOf(name);
      return form === undefined ? [] : [[`/options/${name}`, form]];
    }),
  ),
};

const article = (type: string): string => (/^[aeio]/.test(type) ? `an ${type}` : `a ${type}`);

const KEYWORDS: Record<string, (error: RequestSchemaError) => [ViolationCode, string]> = {
  type: ({ params }) => ['wrong_type', `Must be ${article(String(params.type))}`],
  format: ({ instancePath }) => ['invalid_format', FORMS[instancePath] ?? 'Must be in its format'],
  pattern: ({ instancePath }) => {
    const form = FORMS[instancePath];
    if (form) return ['invalid_format', form];
    return ['invalid_characters', 'Must not hold control characters or broken Unicode'];
  },
  enum: ({ params }) => ['out_of_range', `Must be one of ${params.allowedValues.join(', ')}`],
  minimum: ({ params }) => ['out_of_range', `Must be at least ${params.limit}`],
  maximum: ({ params }) => ['out_of_range', `Must be at most ${params.limit}`],
  required: ({ params }) => [
    'invalid_format',
    `Must have ${params.requiredProperties.join(' and ')}`,
  ],
  minLength: () => ['invalid_format', 'Must not be empty'],
  maxLength: ({ params }) => ['too_long', `Must have at most ${params.limit} characters`],
  minItems: () => ['too_few_items', 'Must name at least one; omit the member instead'],
  maxItems: ({ params }) => [
    'too_many_items',
    `Must have at most ${params.limit} items; send several requests`,
  ],
};

type RequestMembers = Readonly<Record<string, unknown>>;

/** The body of a request as sent. */
export interface SentBody {
  readonly bytes: Buffer;
  /** Its value. @throws Problem `malformed_json` */
  readonly parse: () => unknown;
}

/** True for an object with members. */
export const isMembers = (value: unknown): value is RequestMembers =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object of the request that may have only these members. */
interface Closed {
  readonly path: string;
  /** The number of list items that its schema has to check, by member name. */
  readonly members: ReadonlyMap<string, number>;
  /** The member objects that are closed as well. */
  readonly inner: readonly (Closed & { readonly name: string })[];
}

/**
 * Removes unknown members from a value and reports them. This runs before the schema check,
 * because TypeBox stops at a number of errors and would skip the later ones. A list that is too
 * long is cut to one item beyond its limit, because checking every item would block the event
 * loop. The search stops at more violations than a response lists.
 */
function withoutUnknownMembers(
  value: unknown,
  { path, members, inner }: Closed,
  body: MarketBody | null,
  found: Violation[],
): unknown {
  if (!isMembers(value)) return value;
  const kept: Record<string, unknown> = {};
  let legal: LegalNames | null = null;
  for (const name of Object.keys(value)) {
    // A request may have thousands of unknown members.
    if (found.length > VIOLATIONS_MAX) break;
    const member = value[name];
    const itemsMax = members.get(name);
    if (itemsMax === undefined) {
      const names = [...members.keys()];
      legal ??= { names, suggestions: new Names(names), body };
      found.push(unknownMember(path, name, legal));
      continue;
    }
    const closed = inner.find((each) => each.name === name);
    if (closed) kept[name] = withoutUnknownMembers(member, closed, body, found);
    else
      kept[name] =
        Array.isArray(member) && member.length > itemsMax ? member.slice(0, itemsMax) : member;
  }
  return kept;
}

/** Maps the errors of the schema to violations, one for each place and code. */
function violationsOf(errors: Iterable<RequestSchemaError>): Violation[] {
  const violations = new Map<string, Violation>();
  for (const error of errors) {
    // A value of the wrong type is not reported as an illegal word as well.
    const hasWrongType = violations.has(`${error.instancePath} wrong_type`);
    if (error.keyword === 'enum' && hasWrongType) continue;
    const describe = KEYWORDS[error.keyword];
    const [code, detail] = describe ? describe(error) : ['invalid_format' as const, error.message];
    const pointer = error.instancePath;
    violations.set(`${pointer} ${code}`, { pointer, code, detail });
  }
  return [...violations.values()];
}

export type BodyCheck = (body: unknown) => Violation[];

/** The `members` of a closed object: a list is checked to one item beyond its limit. */
const membersOf = ({ properties }: TObject): Closed['members'] =>
  new Map(
    Object.entries(properties).map(([name, schema]) => {
      const { maxItems = Number.POSITIVE_INFINITY } = schema as { maxItems?: number };
      return [name, maxItems + 1];
    }),
  );

/** Compiles the check of a flat object, such as a query, against its schema. */
export const checkOf = (schema: TObject): BodyCheck =>
  checkWith(schema, { path: '', members: membersOf(schema), inner: [] }, null);

function checkWith(schema: TObject, root: Closed, body: MarketBody | null): BodyCheck {
  const compiled = Compile(schema);
  return (value) => {
    const found: Violation[] = [];
    const known = withoutUnknownMembers(value, root, body, found);
    if (found.length > VIOLATIONS_MAX) return found;
    if (!compiled.Check(known)) {
      const broken = violationsOf(compiled.Errors(known) as Iterable<RequestSchemaError>);
      if (broken.length === 0) throw new Error('the schema rejected a body without an error');
      found.push(...broken);
    }
    return found;
  };
}

/**
 * Compiles the check of a market's request body. The check returns all violations, or more than
 * `VIOLATIONS_MAX`, in a stable order; an empty list means that the body is valid.
 */
export function bodyCheckOf(market: Market, schemas: MarketSchemas): BodyCheck {
  const { filters, options } = schemas;
  const body = closed({ filters: Type.Optional(filters), options: Type.Optional(options) });
  const closedAt = (path: string, schema: TObject, inner: Closed['inner'] = []): Closed => ({
    path,
    members: membersOf(schema),
    inner,
  });
  const inOptions = Object.entries(options.properties)
    .filter((entry): entry is [string, TObject] => Type.IsObject(entry[1]))
    .map(([name, schema]) => ({ name, ...closedAt(`/options/${name}`, schema) }));
  const root = closedAt('', body, [
    { name: 'filters', ...closedAt('/filters', filters) },
    { name: 'options', ...closedAt('/options', options, inOptions) },
  ]);
  const places = new Map([
    ...Object.keys(filters.properties).map((name) => [name, 'filters'] as const),
    ...Object.keys(options.properties).map((name) => [name, 'options'] as const),
  ]);
  return checkWith(body, root, { market, places, suggestions: new Names(places.keys()) });
}
