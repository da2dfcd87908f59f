import Type, { type TObject, type TSchema } from 'typebox';
import { METHODS, PERIODS } from '../../catalog/analytics.ts';
import { closed, word } from '../schemas/components.ts';
import { FORMAT_NAMES } from '../schemas/formats.ts';
import type { MarketSchemas } from '../schemas/market.ts';

const AGGREGATE = Type.Optional(
  Type.String({
    pattern: `^(${PERIODS.join('|')}):(${METHODS.join('|')})$`,
    description: 'One point for each period, `period:method`, such as `month:average`',
  }),
);

const FORMAT = Type.Optional(
  word(FORMAT_NAMES, { description: 'The format of the answer, whatever Accept says' }),
);

/**
 * The parameters of `GET /v3/prices/<slug>`: every member of the filters and options of its body.
 * A list is a parameter that is repeated.
 */
export function parametersOf({ filters, options }: MarketSchemas): TObject {
  const members: Record<string, TSchema> = { ...filters.properties, ...options.properties };
  return closed({ ...members, aggregate: AGGREGATE, format: FORMAT });
}

/**
 * The examples, which are one request together: the documentation page sends them all, filled in
 * for whoever tries an address out.
 */
const EXAMPLES: Readonly<Record<string, unknown>> = {
  dateFrom: '2026-06-01',
  dateTo: '2026-06-30',
  includeSeries: true,
};

interface Parameter {
  readonly name: string;
  readonly in: string;
}

/**
 * Parameters as components of the document: all markets have most of them in common.
 * @param components grows by those that it does not have yet
 * @returns references to them
 */
export const sharedParameters = (
  parameters: readonly object[],
  components: Record<string, unknown>,
): object[] =>
  parameters.map((each) => {
    const { name } = each as Parameter;
    const example = EXAMPLES[name];
    components[name] ??= example === undefined ? each : { ...each, example };
    return { $ref: `#/components/parameters/${name}` };
  });
