import Type from 'typebox';
import { ATTRIBUTES } from '../attributes.ts';
import { closed, flag, maybe, text, whole } from './schema-parts.ts';

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
