import Type, { type TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { BASE_FILTERS, DIMENSIONS } from '../../catalog/dimensions.ts';
import type { Market } from '../../catalog/markets.ts';
import { Names } from '../../catalog/nearest.ts';
import { Problem, shown, type Violation, type ViolationCode } from '../../errors.ts';
import { containsSecret } from '../../std/secrets.ts';
import { closed } from '../schemas/components.ts';
import { filtersOf, type MarketSchemas } from '../schemas/market.ts';
import { escapePointer } from '../schemas/problem.ts';

const DETAIL =
  'Holds what looks like an API key or a token: send it in its header only, and revoke it if ' +
  'others have seen it';

/**
 * Reports values and names of members that hold a credential, which would get into answers and
 * into the log of the database. The pointer of a name is that of the object around it.
 * @param most how many are noted at most
 * @param path the names that lead to the value; as it was when the call is over
 */
function findSecrets(
  value: unknown,
  found: Violation[],
  most: number,
  path: (string | number)[] = [],
): Violation[] {
  if (found.length >= most) return found;
  if (typeof value === 'string') {
    if (containsSecret(value)) found.push(secretAt(path));
  } else if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) findIn(at, each, found, most, path);
  } else if (typeof value === 'object' && value !== null) {
    const names = Object.keys(value);
    if (names.some(containsSecret)) found.push(secretAt(path));
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

/** Violations that one answer lists; a request with more is told so. */
export const VIOLATIONS_MAX = 100;

// TypeBox stops at 8 errors by default; all violations are to be told at once.
Settings.Set({ maxErrors: 4 * VIOLATIONS_MAX });

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

/** What an additional member can be, by the object it was found in. */
interface Legal {
  readonly names: readonly string[];
  readonly suggestions: Names;
  /** The market whose filters they are; null outside the body of a market. */
  readonly market: Market | null;
}

const KNOWN_FILTERS = new Set<string>([...Object.keys(BASE_FILTERS), ...Object.keys(DIMENSIONS)]);

/** True if some market has a filter of this name. */
export const isKnownFilter = (name: string): boolean => KNOWN_FILTERS.has(name);

function unknownMember(parent: string, name: string, legal: Legal): Violation {
  const pointer = `${parent}/${escapePointer(shown(name))}`;
  if (legal.market && parent === '/filters' && isKnownFilter(name)) {
    const filters = filtersOf(legal.market).join(', ');
    const detail = `${legal.market.slug} has no filter ${name}; it takes codes, ${filters}`;
    return { pointer, code: 'unsupported_filter', detail };
  }
  const [near] = legal.suggestions.nearest(name, 1);
  const hint = near ? `did you mean ${near}?` : `legal are ${legal.names.join(', ')}`;
  return { pointer, code: 'unknown_field', detail: `There is no member ${shown(name)}; ${hint}` };
}

const DAY_FORM = 'Must be a real calendar day, written YYYY-MM-DD';

/** What the texts that have a form look like, by their place. */
const FORMS: Readonly<Record<string, string>> = {
  '/filters/dateFrom': DAY_FORM,
  '/filters/dateTo': DAY_FORM,
  '/from': DAY_FORM,
  '/to': DAY_FORM,
  '/after': 'Must be a position as an answer names it in nextSeq or seq',
  '/base': 'Must be an ISO 4217 code of three letters',
  '/quote': 'Must be an ISO 4217 code of three letters',
  '/options/asOf': 'Must be a moment with its offset (RFC 3339), such as 2026-03-05T16:00:00Z',
  '/options/revision': 'Must be a revision as an answer names it in $metadata.revision',
};

const article = (type: string): string => (/^[aeio]/.test(type) ? `an ${type}` : `a ${type}`);

const KEYWORDS: Record<string, (error: SchemaError) => [ViolationCode, string]> = {
  type: ({ params }) => [
    'wrong_type',
    `Must be ${article(String((params as { type: unknown }).type))}`,
  ],
  format: ({ instancePath }) => ['invalid_format', FORMS[instancePath] ?? 'Must be in its format'],
  pattern: ({ instancePath }) => {
    const form = FORMS[instancePath];
    if (form) return ['invalid_format', form];
    return ['invalid_characters', 'Must not hold control characters or broken Unicode'];
  },
  enum: ({ params }) => [
    'out_of_range',
    `Must be one of ${(params as { allowedValues: string[] }).allowedValues.join(', ')}`,
  ],
  minimum: ({ params }) => [
    'out_of_range',
    `Must be at least ${(params as { limit: number }).limit}`,
  ],
  maximum: ({ params }) => [
    'out_of_range',
    `Must be at most ${(params as { limit: number }).limit}`,
  ],
  required: ({ params }) => [
    'invalid_format',
    `Must have ${(params as { requiredProperties: string[] }).requiredProperties.join(' and ')}`,
  ],
  minLength: () => ['invalid_format', 'Must not be empty'],
  maxLength: ({ params }) => [
    'too_long',
    `Must have at most ${(params as { limit: number }).limit} characters`,
  ],
  minItems: () => ['too_few_items', 'Must name at least one; leave the member out instead'],
  maxItems: ({ params }) => [
    'too_many_items',
    `Must have at most ${(params as { limit: number }).limit} items; send several requests`,
  ],
};

type Members = Readonly<Record<string, unknown>>;

/** The body of a request as it was sent. */
export interface SentBody {
  readonly bytes: Buffer;
  /** Its value. @throws Problem `malformed_json` with what is wrong */
  readonly parse: () => unknown;
}

/** True for an object with members. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object of the request that has no other members than these. */
interface Closed {
  readonly path: string;
  /** The names of its members, and of each how many items its schema has to see of a list. */
  readonly members: ReadonlyMap<string, number>;
  /** Objects among the members that are closed as well. */
  readonly inner: readonly (Closed & { readonly name: string })[];
}

/**
 * Takes the members that are not legal out of a value and notes them. They are looked for before
 * the schema is asked, because TypeBox stops counting errors, and would pass over what comes after.
 * Of a list that is too long it sees no more than what tells so: it looks at every item, which
 * holds everybody else up. It stops as soon as there are more violations than an answer lists.
 */
function withoutStrangers(
  value: unknown,
  { path, members, inner }: Closed,
  market: Market | null,
  found: Violation[],
): unknown {
  if (!isMembers(value)) return value;
  const kept: Record<string, unknown> = {};
  let legal: Legal | null = null;
  for (const name of Object.keys(value)) {
    // A request may have thousands of them: none beyond the limit is looked at.
    if (found.length > VIOLATIONS_MAX) break;
    const member = value[name];
    const most = members.get(name);
    if (most === undefined) {
      const names = [...members.keys()];
      legal ??= { names, suggestions: new Names(names), market };
      found.push(unknownMember(path, name, legal));
      continue;
    }
    const closed = inner.find((each) => each.name === name);
    if (closed) kept[name] = withoutStrangers(member, closed, market, found);
    else
      kept[name] = Array.isArray(member) && member.length > most ? member.slice(0, most) : member;
  }
  return kept;
}

/** Turns the schema's errors into violations; one place and code is told once. */
function violationsOf(errors: Iterable<SchemaError>): Violation[] {
  const violations = new Map<string, Violation>();
  for (const error of errors) {
    // A number is not also told that it is none of some words.
    const isTold = violations.has(`${error.instancePath} wrong_type`);
    if (error.keyword === 'enum' && isTold) continue;
    const told = KEYWORDS[error.keyword];
    const [code, detail] = told ? told(error) : ['invalid_format' as const, error.message];
    const pointer = error.instancePath;
    violations.set(`${pointer} ${code}`, { pointer, code, detail });
  }
  return [...violations.values()];
}

/** The refusal of a request that breaks rules, with the first of them. */
export function brokenBy(errors: readonly Violation[]): Problem {
  const { length } = errors;
  const sentence =
    length === 1
      ? 'One rule is broken; errors names the place'
      : length > VIOLATIONS_MAX
        ? `More than ${VIOLATIONS_MAX} rules are broken; errors names the first ${VIOLATIONS_MAX}`
        : `${length} rules are broken; errors names each place`;
  return new Problem('validation_failed', sentence, { errors: errors.slice(0, VIOLATIONS_MAX) });
}

export type BodyCheck = (body: unknown) => Violation[];

/** The members of an object as `Closed` wants them: of a list one item more than it may have. */
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

function checkWith(schema: TObject, root: Closed, market: Market | null): BodyCheck {
  const compiled = Compile(schema);
  return (value) => {
    const found = findSecrets(value, [], VIOLATIONS_MAX + 1);
    const known = withoutStrangers(value, root, market, found);
    if (found.length > VIOLATIONS_MAX) return found;
    if (!compiled.Check(known)) {
      const broken = violationsOf(compiled.Errors(known) as Iterable<SchemaError>);
      if (broken.length === 0) throw new Error('the schema refused a body without saying why');
      found.push(...broken);
    }
    return found;
  };
}

/**
 * Compiles the check of a market's request body against its schema. The check returns the
 * violations in a stable order, all of them or more than `VIOLATIONS_MAX`; an empty list means that
 * the body is valid.
 */
export function bodyCheckOf(market: Market, schemas: MarketSchemas): BodyCheck {
  const { filters, options } = schemas;
  const body = closed({ filters: Type.Optional(filters), options: Type.Optional(options) });
  const aggregate = options.properties['aggregate'] as TObject;
  const closedAt = (path: string, schema: TObject, inner: Closed['inner'] = []): Closed => ({
    path,
    members: membersOf(schema),
    inner,
  });
  const inOptions = [{ name: 'aggregate', ...closedAt('/options/aggregate', aggregate) }];
  const root = closedAt('', body, [
    { name: 'filters', ...closedAt('/filters', filters) },
    { name: 'options', ...closedAt('/options', options, inOptions) },
  ]);
  return checkWith(body, root, market);
}
