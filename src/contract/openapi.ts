import { MARKETS } from '../catalog/markets.ts';
import { PROBLEMS, VIOLATIONS } from '../errors.ts';
import { CONVERTING_REQUEST, convertedExample } from './example-conversion.ts';
import {
  documentExample,
  healthExample,
  listExample,
  referenceExamples,
  requestExample,
  responseExample,
  unavailableExample,
  valuesExample,
} from './examples.ts';
import { pascal } from './market.ts';
import { paragraphs } from './paragraphs.ts';
import { HEADERS, headerRefs, REFUSAL_STATUSES, refusalResponse } from './refusals.ts';

type Members = Record<string, unknown>;

interface Media {
  example?: unknown;
  examples?: Examples;
}

/** Several examples of one place, by a name; each says what it shows. */
type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

interface Response {
  $ref?: string;
  content?: Record<string, Media>;
  headers?: Members;
}

interface OperationObject {
  operationId: string;
  security?: Record<string, string[]>[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Response>;
}

/** An OpenAPI document as this module reads and completes it. */
export interface OpenApiDocument {
  paths: Record<string, Record<string, OperationObject>>;
  components: { headers?: Members; responses?: Members; schemas?: Members };
}

const table = (rows: readonly (readonly string[])[], head: readonly string[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** The limits of a request that no schema says. */
export interface RequestLimits {
  readonly bodyBytes: number;
  readonly nesting: number;
  readonly addressBytes: number;
  readonly headerBytes: number;
}

const INTRODUCTION = paragraphs(
  ['Assessed prices of battery raw materials and metals, market by market.'],
  [
    'A *price* is money for a unit of measure; a *payable* is a percentage of a reference price.',
    'Numbers are exact decimals: read them with a decimal type where the last digit counts.',
  ],
  [
    'Send an API key in `x-api-key`, or a JWT as `Authorization: Bearer`: one of them, once. Each',
    'market has a scope of its own, `prices:<market>`; `prices:*` opens all of them.',
    '`GET /v3/prices` tells which markets there are and which of them your credential opens;',
    '`GET /v3/prices/<market>/filters` tells the values that each filter of a market takes.',
  ],
  [
    'Each answer comes from one state of the data, named by `$metadata.revision` and the header',
    '`x-data-revision`. Every answer has an `x-request-id`; a request may bring its own, of 8 to',
    '64 letters, digits, `_` and `-`.',
  ],
);

const limitsText = (limits: RequestLimits): string =>
  paragraphs(
    ['## Limits'],
    [
      `A body has at most ${limits.bodyBytes} bytes and ${limits.nesting} levels of nesting, an`,
      `address ${limits.addressBytes} bytes, the header block ${limits.headerBytes} bytes; the`,
      'limits of lists are in their schemas. Answers have none: everything that was asked for',
      'comes in one answer, or the connection breaks.',
    ],
    [
      'Each credential has a rate limit, told by `RateLimit-Policy` and `RateLimit` on every',
      'answer, and a number of requests at the same time; `GET /v3/me` tells both. A request',
      'beyond them is answered 429 with `Retry-After`, after which it succeeds.',
    ],
  );

const ERRORS = [
  '## Errors',
  '',
  'Every refusal is `application/problem+json` (RFC 9457) with a stable `code`.',
  '',
  '<details><summary>Every code and its meaning</summary>',
  '',
  table(
    Object.entries(PROBLEMS).map(([code, [status, title]]) => [`\`${code}\``, `${status}`, title]),
    ['code', 'status', 'meaning'],
  ),
  '',
  'With `validation_failed`, `errors` names every place that breaks a rule:',
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
  [INTRODUCTION, limitsText(limits), ERRORS].join('\n\n');

/** Refusals that any request can meet, whatever it asks for. */
const ANY_REQUEST = [400, 408, 414, 431, 500];
const SECURED = [401, 429, 503, 504];

function refusalsOf(path: string, operation: OperationObject): number[] {
  const statuses = [...ANY_REQUEST];
  const { security = [], requestBody } = operation;
  if (security.length > 0) statuses.push(...SECURED);
  if (security.some((each) => Object.values(each).flat().length > 0)) statuses.push(403);
  if (path.startsWith('/v3/') && security.length > 0) statuses.push(406);
  if (requestBody) statuses.push(413, 415);
  return statuses.filter((status) => !operation.responses[status]).sort((a, b) => a - b);
}

const named = (plain: unknown, converted: unknown): Examples => ({
  plain: { summary: 'Prices as they were published', value: plain },
  converted: { summary: 'In euro per pound, with a summary', value: converted },
});

/** What stands as example of a request and of its answer: one value, or several with names. */
interface Shown {
  readonly request?: Media;
  readonly answer: Media;
}

function examplesOf(operationId: string): Shown {
  for (const market of MARKETS) {
    const name = pascal(market.slug);
    if (operationId === `post${name}Prices`) {
      return {
        request: { examples: named(requestExample(market), CONVERTING_REQUEST) },
        answer: { examples: named(responseExample(market), convertedExample(market)) },
      };
    }
    if (operationId === `get${name}Filters`) return { answer: { example: valuesExample(market) } };
  }
  if (operationId === 'getMarkets') return { answer: { example: listExample(MARKETS[0]) } };
  const reference = referenceExamples[operationId];
  if (reference) return { answer: { example: reference } };
  if (operationId === 'live') return { answer: { example: { status: 'ok' } } };
  const isDocument = operationId.startsWith('openapi');
  return { answer: { example: isDocument ? documentExample : healthExample } };
}

const mediaOf = (content: Record<string, Media> | undefined): Media | undefined =>
  Object.values(content ?? {})[0];

/** The headers of an answer that is no refusal, by their names in the document. */
function headersOf(
  path: string,
  operation: OperationObject,
  status: string,
): (keyof typeof HEADERS)[] {
  const isScoped = operation.security?.some((each) => Object.values(each).flat().length > 0);
  const namesState = isScoped || path.startsWith('/v3/reference/');
  return [
    'x-request-id',
    ...(namesState ? (['x-data-revision'] as const) : []),
    ...(operation.responses['304'] ? (['etag'] as const) : []),
    ...(operation.security?.length
      ? (['ratelimit', 'ratelimit-policy', 'x-api-key-expires'] as const)
      : []),
    ...(status === '503' ? (['retry-after'] as const) : []),
  ];
}

function complete(path: string, operation: OperationObject): void {
  const { request, answer } = examplesOf(operation.operationId);
  const body = mediaOf(operation.requestBody?.content);
  if (body) Object.assign(body, request);
  if (operation.requestBody) operation.requestBody.required = true;
  for (const [status, response] of Object.entries(operation.responses)) {
    const media = mediaOf(response.content);
    if (media) Object.assign(media, status === '503' ? { example: unavailableExample } : answer);
    response.headers = headerRefs(headersOf(path, operation, status));
  }
  for (const status of refusalsOf(path, operation)) {
    operation.responses[status] = { $ref: `#/components/responses/Refusal${status}` };
  }
}

/** Completes the document that the routes made: refusals, headers and examples of operations. */
export function completed<T extends object>(document: T): T {
  const openapi = document as unknown as OpenApiDocument;
  for (const [path, operations] of Object.entries(openapi.paths)) {
    for (const operation of Object.values(operations)) complete(path, operation);
  }
  const used = new Set(
    Object.values(openapi.paths)
      .flatMap((operations) => Object.values(operations))
      .flatMap((operation) => Object.keys(operation.responses).map(Number)),
  );
  openapi.components.headers = HEADERS;
  openapi.components.responses = Object.fromEntries(
    REFUSAL_STATUSES.filter((status) => used.has(status)).map((status) => [
      `Refusal${status}`,
      refusalResponse(status),
    ]),
  );
  return document;
}
