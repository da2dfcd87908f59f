import type { Attributes, SourceRecord } from '../records.ts';
import type { TableMapping } from './mapping.ts';
import type { Mapping } from './schema.ts';

/** What a mapping says of a price, by the names of an answer. */
function attributesOf({ code: _, specification, ...attributes }: PriceEntry): Attributes {
  const texts = attributes as Attributes;
  if (specification === undefined) return texts;
  return { ...texts, specification: JSON.stringify(specification) };
}

type PriceEntry = NonNullable<Mapping['prices']>[number];

/** The prices, products and values that a mapping describes, as records with its own lines. */
export function descriptionsOf({ mapping, path, lineOf }: TableMapping): SourceRecord[] {
  const { prices = [], products = [], values = [] } = mapping;
  const place = (list: string, index: number) => ({
    line: lineOf(`/${list}/${index}`),
    file: path,
  });
  return [
    ...products.map(
      (each, index): SourceRecord => ({
        kind: 'product',
        ...place('products', index),
        ...each,
      }),
    ),
    ...values.map(
      (each, index): SourceRecord => ({
        kind: 'value',
        ...place('values', index),
        ...each,
      }),
    ),
    ...prices.map(
      (each, index): SourceRecord => ({
        kind: 'price',
        ...place('prices', index),
        code: each.code,
        attributes: attributesOf(each),
        whenPresent: 'compare',
      }),
    ),
  ];
}
