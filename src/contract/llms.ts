import type { TSchema } from 'typebox';
import { METHODS, PERIODS } from '../catalog/analytics.ts';
import { BASE_FILTERS } from '../catalog/dimensions.ts';
import { MARKETS } from '../catalog/markets.ts';
import { ALL_MARKETS } from '../catalog/scopes.ts';
import { PROBLEMS, VIOLATIONS, WARNINGS } from '../errors.ts';
import { FORMAT_NAMES, FORMATS } from './schemas/formats.ts';
import { optionMembers } from './schemas/options.ts';

/*
 * The contract with clients, without any behaviour: `schemas` has the types of requests and
 * answers, `request` validates requests, and `openapi` describes everything in a document. This
 * file is the description for language models.
 */

/** The parts of the schema of an option that a reader needs. */
interface Option {
  readonly description?: string;
  readonly enum?: readonly string[];
}

const code = (name: string): string => `\`${name}\``;

const codes = (names: Iterable<string>): string => [...names].map(code).join(', ');

/** One line of error codes for each status. */
function refusalLines(): string[] {
  const byStatus = Map.groupBy(Object.entries(PROBLEMS), ([, [status]]) => status);
  return [...byStatus].map(
    ([status, refusals]) => `- ${status}: ${codes(refusals.map(([name]) => name))}`,
  );
}

const AUTHENTICATION = [
  'Send an API key in the header `x-api-key`, or a JWT as `Authorization: Bearer`: one of them,',
  'never in an address. Each market has the scope `prices:<market>`;',
  `${code(ALL_MARKETS)} grants access to all. \`GET /v3/me\` returns your scopes and limits,`,
  '`GET /v3/prices` your markets.',
];

const REQUESTS = [
  '- `POST /v3/prices/<market>` with `content-type: application/json` and',
  '  `{"filters": {"codes": ["CP-NI-0001"], "dateFrom": "2026-06-01"}, "options": {…}}`',
  '- `GET /v3/prices/<market>`: the same with each filter and option as a parameter. A list',
  '  repeats its parameter; `aggregate=month:average`, in a POST',
  '  `"aggregate": {"period": "month", "method": "average"}`.',
  '- `GET /v3/prices/<market>/filters`: the values of each filter.',
  '- `GET /v3/search?q=`: prices by code, name, product, formula or place.',
  '- `GET /v3/changes?after=` (or `since=`): new, corrected, withdrawn points. `wait=25`',
  '  delays an empty answer for up to 25 seconds, then 204: `x-next-seq` is the next `after`.',
  '  `after=revision:<$metadata.revision>` continues from an answer, `after=latest` from now.',
  '- `POST /v3/calculations`: averages, formulas.',
  '- `GET /v3/calendar`: when prices are due.',
  '- `GET /v3/reference/currencies`, `/units`, `/rates`: for conversions.',
  '',
  'Numbers are exact decimals: read them with a decimal type, or with `decimalsAsText`. They are',
  'in the `currency` and `unitOfMeasure` of their record. A payable (`currency` null)',
  'is a percentage of a reference price.',
];

const FORMAT_MEDIA = FORMAT_NAMES.map((name) => `${code(name)} (${code(FORMATS[name].media)})`);

const FORMAT_LINES = [
  `Prices come as ${FORMAT_MEDIA.join(', ')}:`,
  'send `Accept`, or `format=csv` with a GET. NDJSON has a record in each line; all but it and',
  'JSON have a row for each price and date. JSON alone has `$metadata`, the others headers:',
  '`x-data-revision`, `x-next-cursor`, `x-warnings`.',
];

const FILTERS = [
  'A filter is a list of names or ids in any case: OR in a list, AND across lists.',
  '`dateFrom` and `dateTo` (inclusive) bound the series and drop no record. `codes`',
  'goes with the two dates only. Read `$metadata.warnings` before the numbers: a value may match',
  'nothing.',
];

const CONVERSION = [
  'A converted record has a receipt, `conversion`, and each point its rates, `fx`.',
  'Published value × `unitFactor.multiply` × `fx.to` ÷ `unitFactor.divide` ÷ `fx.from` is the',
  'figure, rounded once; with `vat`, ÷ (1 + `vatRate` %). A price that cannot be converted',
  'keeps its currency and unit: check',
  '`conversion.status`. `aggregate` has the',
  `periods ${PERIODS.join(', ')} and the methods ${METHODS.join(', ')}.`,
];

const PAGING = [
  'With `limit`, `$metadata.nextCursor` is the `cursor` of the next page of the same request,',
  'and null on the last. All pages read one revision.',
];

const ERRORS = [
  'An error response is `application/problem+json` with `code`, `detail`,',
  '`requestId` and, for `validation_failed`, `errors` with a `pointer` and a code for each place.',
  'After 429 and 503, repeat the request in `Retry-After` seconds.',
];

/** The description of the service that language models read: `/llms.txt`. */
export function llmsText(): string {
  const marketLines = MARKETS.map(({ slug, filters }) => `- ${code(slug)}: ${codes(filters)}`);
  const options: Readonly<Record<string, TSchema & Option>> = optionMembers(1);
  const optionLines = Object.entries(options).map(([name, { description, enum: words }]) => {
    const legal = words ? ` (${words.join(', ')})` : '';
    return `- ${code(name)}${legal}: ${description}`;
  });
  const sections: readonly (readonly [heading: string, ...lines: string[]])[] = [
    ['Authentication', ...AUTHENTICATION],
    ['Requests', ...REQUESTS],
    [
      'Markets and their filters',
      ...FILTERS,
      '',
      `Every market has ${codes(Object.keys(BASE_FILTERS))} and \`codes\`; besides:`,
      '',
      ...marketLines,
    ],
    ['Formats', ...FORMAT_LINES],
    ['Options', ...optionLines],
    ['Conversion', ...CONVERSION],
    ['Paging', ...PAGING],
    [
      'Error codes',
      ...ERRORS,
      '',
      ...refusalLines(),
      '',
      `Codes of \`errors\`: ${codes(Object.keys(VIOLATIONS))}.`,
      '',
      `Codes of warnings: ${codes(Object.keys(WARNINGS))}.`,
    ],
  ];
  return [
    '# Commodity Prices Service',
    '',
    `> HTTP API of assessed commodity prices in ${MARKETS.length} markets.`,
    '',
    'In full: [OpenAPI 3.1](openapi.json), [every code](docs/problems).',
    ...sections.flatMap(([heading, ...lines]) => ['', `## ${heading}`, '', ...lines]),
    '',
  ].join('\n');
}
