import { MARKETS } from '../../catalog/markets.ts';
import { PROBLEMS, VIOLATIONS } from '../../errors.ts';
import { llmsText } from '../llms.ts';
import { CALCULATION_COMPONENTS } from '../schemas/calculations.ts';
import { CALENDAR_COMPONENTS } from '../schemas/calendar.ts';
import { CHANGE_COMPONENTS } from '../schemas/changes.ts';
import { COMPONENTS, Me, paragraphs } from '../schemas/components.ts';
import { FORMATS } from '../schemas/formats.ts';
import { pascal } from '../schemas/market.ts';
import { POINT_COMPONENTS } from '../schemas/points.ts';
import { ProblemSchema, ViolationSchema } from '../schemas/problem.ts';
import { REFERENCE_COMPONENTS } from '../schemas/reference.ts';
import { SEARCH_COMPONENTS } from '../schemas/search.ts';
import {
  answerExamples,
  calculationExamples,
  calculationRequest,
  calendarExamples,
  changeExamples,
  documentExample,
  type Example,
  exampleComponents,
  generalExamples,
  healthExample,
  requestExamples,
  unavailableExample,
  valuesExample,
} from './examples.ts';
import { type Parameter, REQUEST_HEADERS, withExample } from './parameters.ts';
import {
  CREDENTIAL_HEADERS,
  EVERY_HEADER,
  HEADERS,
  headerRefs,
  REFUSAL_STATUSES,
  refusalResponse,
} from './refusals.ts';

/*
 * The OpenAPI document. Fastify collects the schemas of the routes; this file adds parameters,
 * headers, refusals and examples.
 */

/** Every schema that does not belong to one market. */
export const COMMON_SCHEMAS = [
  ...COMPONENTS,
  ...POINT_COMPONENTS,
  ...REFERENCE_COMPONENTS,
  ...CHANGE_COMPONENTS,
  ...SEARCH_COMPONENTS,
  ...CALCULATION_COMPONENTS,
  ...CALENDAR_COMPONENTS,
  Me,
  ViolationSchema,
  ProblemSchema,
];

type OpenApiMap = Record<string, unknown>;

type Media = OpenApiMap;

interface Response {
  $ref?: string;
  content?: Record<string, Media>;
  headers?: OpenApiMap;
}

interface OperationObject {
  operationId: string;
  summary?: string;
  description?: string;
  tags?: readonly string[];
  parameters?: object[];
  security?: Record<string, string[]>[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Response>;
}

/** An OpenAPI document as this module reads and completes it. */
interface OpenApiDocument {
  paths: Record<string, Record<string, OperationObject>>;
  components: {
    examples?: Record<string, Example>;
    headers?: OpenApiMap;
    parameters?: OpenApiMap;
    responses?: OpenApiMap;
    schemas?: OpenApiMap;
  };
}

const table = (rows: readonly (readonly string[])[], names: readonly string[]): string =>
  [names, names.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** The request limits that no schema states. */
export interface RequestLimits {
  readonly bodyBytes: number;
  readonly nesting: number;
  readonly addressBytes: number;
  readonly headerBytes: number;
  readonly wideCells: number;
}

const INTRODUCTION = paragraphs(
  ['Assessed prices of battery raw materials and metals, market by market.'],
  [
    'A *price* is money for a unit of measure; a *payable* is a percentage of a reference price.',
    'Numbers are exact decimals: read them with a decimal type where the last digit counts.',
  ],
  [
    'Send an API key in `x-api-key`, or a JWT as `Authorization: Bearer`: one of them, once. Each',
    'market has its own scope, `prices:<market>`; `prices:*` grants access to all of them.',
    '`GET /v3/prices` lists the markets and marks those that your credential can read.',
    '`GET /v3/prices/<market>/filters` lists the values of each filter of a market.',
    '`GET /v3/search` finds prices by code, name, product, formula or place.',
    '`GET /v3/changes` returns new, corrected and withdrawn points.',
  ],
  [
    'Each response reads one revision of the data: `$metadata.revision` and the header',
    '`x-data-revision`. `x-min-revision` sets the oldest allowed. Every response has an',
    '`x-request-id`; a request may set it: 8 to 64 letters, digits, `_` and `-`. Responses',
    'from 1 kB are compressed with zstd, Brotli or gzip by `Accept-Encoding`.',
  ],
);

const PRICES = paragraphs(
  ['## Prices'],
  [
    'A filter takes ids or names, ignoring case: OR inside a list, AND across lists.',
    '`dateFrom` and `dateTo` bound the series and never drop a record. A value that matches',
    'nothing is reported in `$metadata.warnings`, or rejected with `options.strict`. Records are',
    'sorted by code. `options.includeSeries` adds their series.',
  ],
  [
    '`currency` and `unitOfMeasure` convert prices exactly, with a receipt from which every',
    'figure can be recomputed. Payables are never converted. `includeSummary` adds the latest',
    'assessment and its changes. `aggregate` returns one point for each week, month, quarter or',
    'year. `asOf` and `revision` return prices, attributes and rates exactly as they were known',
    'then. `limit` and `cursor` split the response into pages of one revision.',
  ],
  [
    'A GET returns the bytes of the POST, except for the pointers of warnings and violations. They',
    'name a parameter: `?dateFrom`, or `?products/0` for the first value of `products`. Values are',
    'not split at commas. The response may be cached; it is a 304 while nothing has changed. HEAD',
    'returns its headers. Send a list that is too long for an address by POST.',
  ],
  [
    'CSV follows RFC 4180 in UTF-8: one row for each price and date, and one without date and',
    'values for a price without points. Every response has all columns in the same order; new',
    'columns are added at the end. A text that begins with = + - @, a tab or a carriage return',
    'gets a leading apostrophe, as does its part after a semicolon, a tab or a line break. A code',
    'is sent in a filter without it.',
  ],
);

const limitsText = (limits: RequestLimits): string =>
  paragraphs(
    ['## Limits'],
    [
      `A body has at most ${limits.bodyBytes} bytes and ${limits.nesting} levels of nesting, an`,
      `address ${limits.addressBytes} bytes, the header block ${limits.headerBytes} bytes; the`,
      'limits of lists are in their schemas. Responses have no size limit, except pages of the',
      `change feed and \`layout=wide\`, which has at most ${limits.wideCells} cells, dates times`,
      'prices: a response is complete, or the connection breaks.',
    ],
    [
      'Each credential has a rate limit and a concurrency limit; `GET /v3/me` returns both. The',
      'headers `RateLimit-Policy` and `RateLimit` report the rate limit, except when the',
      'credential or the address is rejected. A request without the required scope counts as any',
      'other. A request beyond a limit gets 429 with `Retry-After`; retry it after that time. A',
      'network that sent too many invalid credentials gets 429 as well, until `Retry-After` has',
      'passed.',
    ],
  );

const ERRORS = [
  '## Errors',
  '',
  'Every error response is `application/problem+json` (RFC 9457) with a stable `code`.',
  '',
  '<details><summary>Every code and its meaning</summary>',
  '',
  table(
    Object.entries(PROBLEMS).map(([code, [status, title]]) => [`\`${code}\``, `${status}`, title]),
    ['code', 'status', 'meaning'],
  ),
  '',
  'With `validation_failed`, `errors` lists every place that breaks a rule. After',
  '`unknown_revision` or `invalid_cursor`, discard the revision, feed position or cursor and',
  'start again. `errors` then has one entry, with the same code and the place. A request that',
  'breaks other rules too is rejected as `validation_failed` first, without that entry.',
  '',
  table(
    Object.entries(VIOLATIONS).map(([code, text]) => [`\`${code}\``, text]),
    ['errors[].code', 'meaning'],
  ),
  '',
  '</details>',
].join('\n');

/** The introduction of the document, with every error code. */
export const descriptionOf = (limits: RequestLimits): string =>
  [INTRODUCTION, PRICES, limitsText(limits), ERRORS].join('\n\n');

const HEAD_REF = { $ref: '#/components/responses/Head' };

/** Error statuses of every operation. */
const ANY_REQUEST = [400, 408, 414, 431, 500];
const SECURED = [401, 429, 503, 504];

/** Its requests need the scopes of the markets that their inputs belong to. */
const CALCULATIONS = '/v3/calculations';

/** True if a credential needs a scope for the operation. */
const isScoped = ({ security = [] }: OperationObject): boolean =>
  security.some((each) => Object.values(each).flat().length > 0);

/** True for a document, whose requests wait in the queue of addresses without credentials. */
const isDocument = ({ tags = [] }: OperationObject): boolean => tags.includes('Documentation');

function refusalsOf(path: string, operation: OperationObject): number[] {
  const statuses = [...ANY_REQUEST];
  const { security = [], requestBody } = operation;
  if (isDocument(operation)) statuses.push(503);
  if (security.length > 0) statuses.push(...SECURED);
  if (isScoped(operation) || path === CALCULATIONS) statuses.push(403);
  if (path.startsWith('/v3/') && security.length > 0) statuses.push(406);
  if (requestBody) statuses.push(413, 415);
  return statuses.filter((status) => !operation.responses[status]).sort((a, b) => a - b);
}

/** The example of a response in a media type. */
function exampleOf(operationId: string, status: string, media: string): Media {
  if (status === '503') return { example: unavailableExample };
  for (const market of MARKETS) {
    const name = pascal(market.slug);
    if (operationId.endsWith(`${name}Prices`)) {
      const examples = answerExamples(market)[media];
      return examples ? { examples } : {};
    }
    if (operationId === `get${name}Filters`) {
      return market === MARKETS[0] ? { example: valuesExample } : {};
    }
  }
  if (operationId === 'calculate') return { example: calculationExamples[media] };
  if (operationId === 'getChanges') return { example: changeExamples[media] };
  if (operationId === 'getCalendar') return { example: calendarExamples[media] };
  const general = generalExamples[operationId];
  if (general) return { example: general };
  if (operationId === 'llmsText') return { example: llmsText().split('\n', 1)[0] };
  if (operationId === 'live') return { example: { status: 'ok' } };
  return { example: operationId.startsWith('openapi') ? documentExample : healthExample };
}

/** The market whose prices an operation reads. */
const marketOf = (operationId: string) =>
  MARKETS.find(({ slug }) => operationId.replace(/^(get|post)/, '') === `${pascal(slug)}Prices`);

/** The headers of a successful response, by their names in the document. */
function headersOf(
  path: string,
  operation: OperationObject,
  status: string,
): (keyof typeof HEADERS)[] {
  const namesRevision = isScoped(operation) || /^\/v3\/(reference|search|calc)/.test(path);
  const isCalendar = operation.operationId === 'getCalendar';
  const isFeed = operation.operationId === 'getChanges';
  const hasCsv = operation.responses[status]?.content?.[FORMATS.csv.media] !== undefined;
  const hasFormats = hasCsv && !isCalendar && !isFeed;
  return [
    ...EVERY_HEADER,
    ...(operation.security?.length ? CREDENTIAL_HEADERS : []),
    ...(namesRevision ? (['x-data-revision'] as const) : []),
    ...(hasFormats ? (['content-disposition', 'x-warnings', 'x-warnings-count'] as const) : []),
    ...(isCalendar && hasCsv ? (['content-disposition'] as const) : []),
    ...(hasFormats && path !== CALCULATIONS ? (['x-next-cursor'] as const) : []),
    ...(hasFormats && !operation.requestBody ? (['link'] as const) : []),
    ...(isFeed ? (['x-next-seq', 'x-has-more'] as const) : []),
    ...(isFeed && hasCsv ? (['x-warnings', 'x-warnings-count'] as const) : []),
    ...(operation.responses['304'] ? (['etag'] as const) : []),
    ...(status === '503' ? (['retry-after'] as const) : []),
  ];
}

function complete(
  path: string,
  operation: OperationObject,
  components: OpenApiDocument['components'],
): void {
  const { operationId, requestBody } = operation;
  if (requestBody) {
    requestBody.required = true;
    const market = marketOf(operationId);
    for (const media of Object.values(requestBody.content)) {
      if (market) media['examples'] = requestExamples(market);
      else media['examples'] = calculationRequest;
    }
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    for (const [type, media] of Object.entries(response.content ?? {})) {
      Object.assign(media, exampleOf(operationId, status, type));
    }
    response.headers = headerRefs(headersOf(path, operation, status));
  }
  const { 304: unchanged } = operation.responses;
  if (unchanged && (isScoped(operation) || path === CALCULATIONS)) {
    components.responses = { ...components.responses, NotModified: unchanged };
    operation.responses[304] = { $ref: '#/components/responses/NotModified' };
  }
  for (const status of refusalsOf(path, operation)) {
    operation.responses[status] = { $ref: `#/components/responses/Refusal${status}` };
  }
}

const parameterRef = (name: string) => ({ $ref: `#/components/parameters/${name}` });

/**
 * Moves parameters to the components of the document, because markets share most of them.
 * @param components receives each parameter that it lacks
 * @returns references to the components
 */
const sharedParameters = (parameters: readonly Parameter[], components: OpenApiMap): object[] =>
  parameters.map((each) => {
    components[each.name] ??= each;
    return parameterRef(each.name);
  });

/** The request headers that an operation reads. */
const requestHeadersOf = ({
  security,
  responses,
}: OperationObject): (keyof typeof REQUEST_HEADERS)[] => [
  'x-request-id',
  ...(security?.length ? (['x-min-revision'] as const) : []),
  ...(responses['304'] ? (['if-none-match'] as const) : []),
];

/** Adds examples, the request headers and references to shared parameters to an operation. */
function completeParameters(operation: OperationObject, components: OpenApiMap): void {
  const own = (operation.parameters ?? []).map((each) => withExample(each as Parameter));
  operation.parameters = [
    ...(marketOf(operation.operationId) ? sharedParameters(own, components) : own),
    ...requestHeadersOf(operation).map(parameterRef),
  ];
}

/** The HEAD operation of a GET. One response describes all of them. */
function headOf({ operationId, requestBody: _none, ...get }: OperationObject): OperationObject {
  const name = operationId.replace(/^get/, '');
  return {
    ...get,
    operationId: `head${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    summary: `${get.summary?.replace(', by GET', '')}, headers only`,
    description: 'The status and the headers of the GET.',
    responses: {
      200: HEAD_REF,
      ...(get.responses[304] && { 304: HEAD_REF }),
      '4XX': HEAD_REF,
      '5XX': HEAD_REF,
    },
  };
}

/** Adds error responses, headers and examples to the document that the routes produced. */
export function completed<T extends object>(document: T): T {
  const { paths, components } = document as unknown as OpenApiDocument;
  const parameters: OpenApiMap = {};
  const used = new Set<number>();
  for (const [path, operations] of Object.entries(paths)) {
    for (const operation of Object.values(operations)) {
      complete(path, operation, components);
      completeParameters(operation, parameters);
      for (const status of Object.keys(operation.responses)) used.add(Number(status));
    }
    if (operations['get']) operations['head'] = headOf(operations['get']);
  }
  components.parameters = { ...parameters, ...REQUEST_HEADERS };
  components.examples = Object.assign({}, ...MARKETS.map((market) => exampleComponents(market)));
  components.headers = HEADERS;
  components.responses = {
    ...components.responses,
    Head: {
      description: 'The status and the headers of the GET, without a body',
      headers: headerRefs(Object.keys(HEADERS) as (keyof typeof HEADERS)[]),
    },
    ...Object.fromEntries(
      REFUSAL_STATUSES.filter((status) => used.has(status)).map((status) => [
        `Refusal${status}`,
        refusalResponse(status),
      ]),
    ),
  };
  return document;
}
