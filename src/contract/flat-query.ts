import type { TObject } from 'typebox';
import { nearest } from '../catalog/nearest.ts';
import { shown, type Violation } from '../errors.ts';
import { parameterPointer } from './pointer.ts';
import { queryOf, sentValue, typeOf, unknownParameter } from './query.ts';
import { checkOf, VIOLATIONS_MAX } from './validate.ts';

/** The parameters of an address that is of no market, and all that is wrong with them. */
export interface FlatQuery {
  readonly values: Readonly<Record<string, unknown>>;
  readonly errors: readonly Violation[];
}

interface Items {
  readonly items?: { readonly enum?: readonly string[] };
}

/** A word of a list that is none of the legal ones, told with the one that it nearly is. */
function withNearest(violation: Violation, { properties }: TObject, values: FlatQuery['values']) {
  const [, name = '', place] = violation.pointer.split('/');
  if (violation.code !== 'out_of_range' || place === undefined) return violation;
  const legal = (properties[name] as Items | undefined)?.items?.enum;
  const sent = (values[name] as readonly string[] | undefined)?.[Number(place)];
  const [near] = legal && sent !== undefined ? nearest(sent, legal, 1) : [];
  if (near === undefined || sent === undefined) return violation;
  return { ...violation, detail: `There is no ${name} ${shown(sent)}; did you mean ${near}?` };
}

/** How an address reads its query against a schema, strictly, as those of markets do. */
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
    // What is missing was told above.
    const wrong = check(values).filter(({ pointer }) => pointer !== '');
    return {
      values,
      errors: [...errors, ...wrong.map((each) => withNearest(each, schema, values))],
    };
  };
}
