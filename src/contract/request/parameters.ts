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
  word(FORMAT_NAMES, { description: 'Format of the response; overrides Accept' }),
);

/**
 * The parameters of `GET /v3/prices/<slug>`: every filter and option of the request body. A list
 * is a repeated parameter.
 */
export function parametersOf({ filters, options }: MarketSchemas): TObject {
  const members: Record<string, TSchema> = { ...filters.properties, ...options.properties };
  return closed({ ...members, aggregate: AGGREGATE, format: FORMAT });
}

/**
 * The examples together form one valid request, because the API page fills in all of them.
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
 * Moves parameters to the components of the document, because markets share most of them.
 * @param components receives each parameter that it lacks
 * @returns references to the components
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
