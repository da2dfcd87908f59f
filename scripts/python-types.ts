/** The parts of a JSON schema that the OpenAPI document uses for answers. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}
export type Schemas = Readonly<Record<string, Schema>>;

/** Types that the Python client names, beside the records of prices. */
const ROOTS = [
  'Metadata',
  'SearchResult',
  'FilterValue',
  'CurrencyEntry',
  'UnitEntry',
  'DuePrice',
  'RateEntry',
  'Me',
  'MarketSummary',
  'Change',
];

const HEAD = `"""Types of the records of the Commodity Prices Service, version 3, for type checkers.

Generated from openapi.yaml. PriceRecord is a price of any market; a market has its own type, such
as NickelPriceRecord. Decimals are float here; with Client(decimal=True) every number is a
decimal.Decimal, and with decimalsAsText decimals are str.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union

`;

/** Words that no member of a Python class can have as its name. */
const KEYWORDS = ['from', 'class', 'import', 'in', 'is', 'not', 'as', 'for', 'with', 'None'];

const SCALARS: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
};

const nameOf = (ref: string): string => ref.split('/').at(-1) ?? '';

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A Python literal of a JSON scalar. */
function literalOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return value === null ? 'None' : JSON.stringify(value);
}

function unionOf(types: readonly string[]): string {
  const all = [...new Set(types)];
  const others = all.filter((each) => each !== 'None');
  const [first = 'None'] = others;
  const one = others.length > 1 ? `Union[${others.join(', ')}]` : first;
  return others.length === all.length || others.length === 0 ? one : `Optional[${one}]`;
}

/** Writes the TypedDicts of schemas: each object once, and one with a name before its users. */
class TypeWriter {
  readonly #schemas: Schemas;
  readonly #written = new Set<string>();
  readonly #texts: string[] = [];

  constructor(schemas: Schemas) {
    this.#schemas = schemas;
  }

  get text(): string {
    return this.#texts.join('\n\n');
  }

  /** The Python type of a schema. `name` is that of an object which the document does not name. */
  typeOf(schema: Schema, name: string): string {
    const { $ref, anyOf, oneOf, items, properties } = schema;
    if ($ref !== undefined) {
      const named = this.#schemas[nameOf($ref)];
      if (nameOf($ref) === 'Decimal') return 'float';
      if (named === undefined) throw new Error(`openapi.yaml has no ${$ref}`);
      return this.typeOf(named, nameOf($ref));
    }
    const choice = anyOf ?? oneOf;
    if (choice) return unionOf(choice.map((each) => this.typeOf(each, name)));
    if (schema.const !== undefined) return `Literal[${literalOf(schema.const)}]`;
    if (schema.enum) return `Literal[${schema.enum.map(literalOf).join(', ')}]`;
    if (properties) return this.#object(schema, name);
    if (items) return `list[${this.typeOf(items, `${name}Item`)}]`;
    const types = [schema.type ?? []].flat();
    return unionOf(types.map((each) => SCALARS[each] ?? 'object'));
  }

  /** Writes an alias of a union, such as the shapes of a change. */
  alias(name: string): void {
    const type = this.typeOf({ $ref: name }, name);
    if (type !== name) this.#texts.push(`${name} = ${type}\n`);
  }

  #object(schema: Schema, name: string): string {
    if (this.#written.has(name)) return name;
    this.#written.add(name);
    const { properties = {}, required = [], description } = schema;
    const members = Object.entries(properties).map(([member, each]) => ({
      member,
      type: this.typeOf(each, `${name}${capitalized(member)}`),
      isRequired: required.includes(member),
    }));
    const always = members.filter(({ isRequired }) => isRequired);
    const sometimes = members.filter(({ isRequired }) => !isRequired);
    if (sometimes.length === 0) this.#dict(name, 'TypedDict', always, description);
    else {
      this.#dict(`_${name}`, 'TypedDict', always);
      this.#dict(name, `_${name}, total=False`, sometimes, description);
    }
    return name;
  }

  #dict(
    name: string,
    base: string,
    members: readonly { readonly member: string; readonly type: string }[],
    description = '',
  ): void {
    if (members.some(({ member }) => KEYWORDS.includes(member))) {
      const entries = members.map(({ member, type }) => `    "${member}": ${type},\n`);
      this.#texts.push(`${name} = TypedDict("${name}", {\n${entries.join('')}})\n`);
      return;
    }
    const says = description === '' ? '' : `    """${description.replaceAll('\n', ' ')}"""\n`;
    const body = members.map(({ member, type }) => `    ${member}: ${type}\n`).join('');
    this.#texts.push(`class ${name}(${base}):\n${says}${body || '    pass\n'}`);
  }
}

/** A price of any market: what all records require, and the dimensions that some have. */
function anyRecord(records: readonly Schema[]): Schema {
  const properties = Object.assign({}, ...records.map((each) => each.properties)) as Schemas;
  const required = Object.keys(properties).filter((name) =>
    records.every((each) => each.required?.includes(name)),
  );
  return { properties, required, description: 'A price of any market' };
}

/**
 * The module of Python with the types of records.
 * @throws Error for a reference to a schema that the document lacks
 */
export function pythonTypes(schemas: Schemas): string {
  const names = Object.keys(schemas).filter((name) => name.endsWith('PriceRecord'));
  const all = { ...schemas, PriceRecord: anyRecord(names.map((name) => schemas[name] ?? {})) };
  const writer = new TypeWriter(all);
  for (const name of ['PriceRecord', ...names, ...ROOTS]) writer.alias(name);
  return `${HEAD}\n${writer.text}`;
}
