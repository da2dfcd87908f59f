import Type, { type TProperties, type TSchema } from 'typebox';
import { ATTRIBUTES } from '../attributes.ts';

/** An object that takes no other members. What each member is stands in its description. */
export const closed = <P extends TProperties>(properties: P, description: string) =>
  Type.Object(properties, { additionalProperties: false, description });

/** A member that may be absent. */
export const maybe = Type.Optional;
/** A text that is not empty. */
export const text = (description: string, lengthMax = 200) =>
  Type.String({ minLength: 1, maxLength: lengthMax, description });
/** A whole number. */
export const whole = (minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, description });
/** One of some words. */
export const word = <const W extends readonly string[]>(words: W, description: string) =>
  Type.Unsafe<W[number]>({ enum: words, description });
/** true or false. */
export const flag = (description: string) => Type.Boolean({ description });
/** A list of texts. */
export const texts = (description: string, least = 1) =>
  Type.Array(Type.String({ maxLength: 200, description: 'a text' }), {
    minItems: least,
    maxItems: 1_000,
    description,
  });
/** Names that the file has, each with a value. */
export const dictionary = (value: TSchema, description: string) =>
  Type.Unsafe<Readonly<Record<string, string>>>({
    type: 'object',
    minProperties: 1,
    maxProperties: 16_384,
    additionalProperties: value,
    description,
  });

/** A column: its name in the header (or its letters where there is none), or its place from 1. */
export type ColumnRef = string | number;
/** A reference to a column. */
export const column = (description: string) =>
  Type.Unsafe<ColumnRef>({
    type: ['string', 'integer'],
    minLength: 1,
    maxLength: 200,
    minimum: 1,
    maximum: 16_384,
    description: `${description}: the name in the header, or the place from 1`,
  });

/** A list. */
export const list = <S extends TSchema>(item: S, description: string) =>
  Type.Array(item, { maxItems: 1_000, description });

const code = text('the code of a price', 64);
const attribute = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  maxLength: 1_000,
  description: 'a text, or null for none',
});
const specification = Type.Array(
  closed(
    {
      name: text('a name'),
      value: text('a text', 1_000),
      order: maybe(whole(0, 1_000, 'a place')),
    },
    'an entry',
  ),
  { maxItems: 100, description: 'a list of names and values' },
);

/** A price that the mapping describes, with the members of an NDJSON price record. */
export const price = Type.Unsafe<{ code: string } & Readonly<Record<string, unknown>>>(
  closed(
    {
      code,
      ...Object.fromEntries(ATTRIBUTES.map((name) => [name, maybe(attribute)])),
      specification: maybe(specification),
    },
    'the description of a price',
  ),
);
/** A product that the mapping describes. */
export const product = closed(
  {
    market: text('the slug of a market'),
    name: text('a name'),
    alias: text('a short name'),
    chemicalCode: text('a chemical formula'),
    isSustainable: flag('true or false'),
  },
  'a product',
);
/** A value of a dimension that the mapping describes. */
export const dimensionValue = closed(
  { dimension: text('a dimension'), name: text('a name') },
  'a value',
);
