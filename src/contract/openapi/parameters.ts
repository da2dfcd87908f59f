import { BASE_FILTERS, DIMENSIONS } from '../../catalog/dimensions.ts';
import { MARKETS } from '../../catalog/markets.ts';
import { OPTION_NAMES, optionOf } from '../schemas/options.ts';
import { EXAMPLE_CODE, exampleOfField } from './examples.ts';
import { HEADERS } from './refusals.ts';

/** A parameter of the document. */
export interface Parameter {
  readonly name: string;
  readonly schema: object;
}

/** Values of options, by the name of the option. */
const valuesOf = (kind: 'example' | 'sample') =>
  Object.fromEntries(
    OPTION_NAMES.flatMap((name) => {
      const value = optionOf(name)[kind];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );

/** An example of each parameter; those of an operation together are one valid request. */
const EXAMPLES: Readonly<Record<string, unknown>> = {
  ...valuesOf('example'),
  dateFrom: '2026-06-01',
  dateTo: '2026-06-30',
  format: 'json',
  market: [MARKETS[0].slug],
  after: 'latest',
  wait: 0,
  operations: ['corrected'],
  q: EXAMPLE_CODE,
  base: 'EUR',
  quote: 'USD',
  from: '2026-06-01',
  to: '2026-06-30',
};

const filterExamples = Object.values({ ...BASE_FILTERS, ...DIMENSIONS }).flatMap(
  ({ filter, field }) => {
    const name = exampleOfField(field);
    return name === undefined ? [] : [[filter, [name]] as const];
  },
);

/**
 * Values that show a form only. They exclude each other, or are of some markets, another format or
 * an earlier response. They are in the schema, so that no tool fills them in.
 */
const FORMS: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(filterExamples),
  ...valuesOf('sample'),
  codes: [EXAMPLE_CODE],
  since: '2026-03-06T18:00:00Z',
};

/** A parameter with its example. */
export function withExample(parameter: Parameter): Parameter {
  const { name, schema } = parameter;
  if (name in EXAMPLES) return { ...parameter, example: EXAMPLES[name] } as Parameter;
  return name in FORMS
    ? { ...parameter, schema: { ...schema, examples: [FORMS[name]] } }
    : parameter;
}

const requestHeader = (name: string, description: string, example: string, pattern?: string) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string', ...(pattern !== undefined && { pattern }) },
  example,
});

/** The request headers that the service reads, besides those of credentials and negotiation. */
export const REQUEST_HEADERS = {
  'x-request-id': requestHeader(
    'x-request-id',
    'Id of the request in the response and the log. Another form is replaced by a new id',
    HEADERS['x-request-id'].example,
    '^[\\w-]{8,64}$',
  ),
  'x-min-revision': requestHeader(
    'x-min-revision',
    'Oldest revision allowed: an `x-data-revision`, or `latest` for the newest of the database',
    'latest',
    '^(latest|[0-9a-z]{4,18}\\.(0|[1-9]\\d{0,17}))$',
  ),
  'if-none-match': requestHeader(
    'if-none-match',
    'An ETag: the response is a 304 if it is still current',
    HEADERS.etag.example,
  ),
} as const;
