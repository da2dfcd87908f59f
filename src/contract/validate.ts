import Type, { type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { BASE_FILTERS, DIMENSIONS } from '../catalog/dimensions.ts';
import type { Market } from '../catalog/markets.ts';
import { shown, type Violation, type ViolationCode } from '../errors.ts';
import { closed } from './components.ts';
import { filtersOf, type MarketSchemas } from './market.ts';
import { nearest } from './names.ts';

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
  readonly market: Market;
}

const KNOWN_FILTERS = new Set<string>([...Object.keys(BASE_FILTERS), ...Object.keys(DIMENSIONS)]);

const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

function unknownMember(parent: string, name: string, legal: Legal): Violation {
  const pointer = `${parent}/${escapePointer(shown(name))}`;
  if (parent === '/filters' && KNOWN_FILTERS.has(name)) {
    const filters = filtersOf(legal.market).join(', ');
    const detail = `${legal.market.slug} has no filter ${name}; it takes codes, ${filters}`;
    return { pointer, code: 'unsupported_filter', detail };
  }
  const [near] = nearest(name, legal.names, 1);
  const hint = near ? `did you mean ${near}?` : `legal are ${legal.names.join(', ')}`;
  return { pointer, code: 'unknown_field', detail: `There is no member ${shown(name)}; ${hint}` };
}

const article = (type: string): string => (/^[aeio]/.test(type) ? `an ${type}` : `a ${type}`);

const KEYWORDS: Record<string, (error: SchemaError) => [ViolationCode, string]> = {
  type: ({ params }) => [
    'wrong_type',
    `Must be ${article(String((params as { type: unknown }).type))}`,
  ],
  format: () => ['invalid_format', 'Must be a real calendar day, written YYYY-MM-DD'],
  pattern: ({ instancePath }) =>
    /\/date(From|To)$/.test(instancePath)
      ? ['invalid_format', 'Must be a real calendar day, written YYYY-MM-DD']
      : ['invalid_characters', 'Must not hold control characters or broken Unicode'],
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

/** Turns the schema's errors into violations; one place and code is told once. */
function violationsOf(errors: Iterable<SchemaError>, legalAt: (path: string) => Legal) {
  const violations = new Map<string, Violation>();
  const add = (violation: Violation) => {
    violations.set(`${violation.pointer} ${violation.code}`, violation);
  };
  for (const error of errors) {
    if (error.keyword === 'additionalProperties') {
      const { additionalProperties } = error.params as { additionalProperties: string[] };
      for (const name of additionalProperties.slice(0, VIOLATIONS_MAX + 1)) {
        add(unknownMember(error.instancePath, name, legalAt(error.instancePath)));
      }
    } else if (error.keyword !== 'boolean') {
      const told = KEYWORDS[error.keyword];
      const [code, detail] = told ? told(error) : ['invalid_format' as const, error.message];
      add({ pointer: error.instancePath, code, detail });
    }
  }
  return [...violations.values()];
}

export type BodyCheck = (body: unknown) => Violation[];

/**
 * Compiles the check of a market's request body against its schema. The check returns the
 * violations in a stable order, all of them or more than `VIOLATIONS_MAX`; an empty list means that
 * the body is valid.
 */
export function bodyCheckOf(market: Market, schemas: MarketSchemas): BodyCheck {
  const { filters, options } = schemas;
  const body: TSchema = closed({
    filters: Type.Optional(filters),
    options: Type.Optional(options),
  });
  const compiled = Compile(body);
  const namesOf = (schema: TSchema): string[] =>
    Object.keys((schema as unknown as { properties: object }).properties);
  const legalAt = (path: string): Legal => {
    const schema = path === '/filters' ? filters : path === '/options' ? options : body;
    return { market, names: namesOf(schema) };
  };
  return (value) => {
    if (compiled.Check(value)) return [];
    return violationsOf(compiled.Errors(value) as Iterable<SchemaError>, legalAt);
  };
}
