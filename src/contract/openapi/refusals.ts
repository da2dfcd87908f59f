import { MARKETS } from '../../catalog/markets.ts';
import { PROBLEMS, Problem, type ProblemCode, type Violation } from '../../errors.ts';
import { OPTIONS } from '../schemas/options.ts';
import { problemBody } from '../schemas/problem.ts';

const REQUEST_ID = '019cbe30-9f2e-7cc1-8d0b-4c1ac4f7f3d1';

/** The violation in the example of each code that has `errors`. */
const BROKEN: Partial<Record<ProblemCode, Violation>> = {
  validation_failed: {
    pointer: '/filters/dateFrom',
    code: 'date_order',
    detail: 'dateFrom must not lie after dateTo; swap them',
  },
  unknown_revision: {
    pointer: '/options/revision',
    code: 'unknown_revision',
    detail: 'This revision is of another epoch or was lost in a failover; retry without it',
  },
  invalid_cursor: {
    pointer: '/options/cursor',
    code: 'invalid_cursor',
    detail: 'This cursor belongs to another request; repeat that request, or omit the cursor',
  },
};

/** The codes that can come with each status. */
const codesOf = (status: number): readonly ProblemCode[] =>
  (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => PROBLEMS[code][0] === status);

const header = (description: string, example: string) => ({
  description,
  schema: { type: 'string' },
  example,
});

/** Every header that the document describes. */
export const HEADERS = {
  'x-request-id': header('Id of the request, for support', REQUEST_ID),
  'cache-control': header('`no-store`, or for a GET with an ETag: revalidate it', 'no-store'),
  vary: header('The request headers that the response depends on', 'accept, accept-encoding'),
  'content-encoding': header('Compression of the body', 'gzip'),
  'x-data-revision': header('Revision of the data that was read, opaque', OPTIONS.revision.sample),
  'x-next-cursor': header(
    '`$metadata.nextCursor`; absent after the last page',
    OPTIONS.cursor.sample,
  ),
  link: header(
    'Next page, relative to this address; absent after the last',
    '<?cursor=Wy>; rel="next"',
  ),
  'content-disposition': header(
    'File name with the market and the day of the revision',
    'attachment; filename="nickel-2026-11-25.csv"',
  ),
  'x-warnings': header(
    '`$metadata.warnings` of formats without `$metadata`: JSON in ASCII, as many as fit 4 KB',
    '[]',
  ),
  'x-warnings-count': header('Number of warnings', '0'),
  'x-next-seq': header('Position of this page: the next `after`', 'k3f9a1w2c7xe.5120'),
  'x-has-more': header('`true` if changes may follow already', 'false'),
  etag: header('Tag of this response: send it as If-None-Match', '"0Qk3nB2m"'),
  ratelimit: header('Requests left, and seconds until there are more', '"default";r=599;t=1'),
  'ratelimit-policy': header(
    'Requests allowed, and the seconds they cover',
    '"default";q=600;w=60',
  ),
  'retry-after': header('Seconds to wait before a retry', '2'),
  'x-api-key-expires': header(
    'Expiry of the key, in its last 30 days',
    'Tue, 01 Dec 2026 00:00:00 GMT',
  ),
  'x-min-revision-unknown': header(
    'The sent `x-min-revision`, if it is of another epoch: nothing was waited for',
    OPTIONS.revision.sample,
  ),
  'www-authenticate': header(
    'The accepted schemes, or the required scope',
    'Bearer realm="prices", ApiKey realm="prices"',
  ),
} as const;

type HeaderName = keyof typeof HEADERS;

/** The headers of every response. Those of HTTP, helmet and CORS are not described. */
export const EVERY_HEADER = [
  'x-request-id',
  'cache-control',
  'vary',
  'content-encoding',
] as const satisfies readonly HeaderName[];

/** The headers of responses to a request with a credential. */
export const CREDENTIAL_HEADERS = [
  'ratelimit',
  'ratelimit-policy',
  'x-api-key-expires',
  'x-min-revision-unknown',
] as const satisfies readonly HeaderName[];

/** References to headers of the document. */
export const headerRefs = (names: readonly HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const MORE: Record<number, readonly HeaderName[]> = {
  401: ['www-authenticate'],
  403: ['www-authenticate'],
  429: ['retry-after'],
  503: ['retry-after'],
};

function example(code: ProblemCode): unknown {
  const broken = BROKEN[code];
  const problem = new Problem(code, PROBLEMS[code][1], broken ? { errors: [broken] } : {});
  return JSON.parse(problemBody(problem, `/v3/prices/${MARKETS[0].slug}`, REQUEST_ID));
}

/** The OpenAPI response of an error status, with one example for each code. */
export function refusalResponse(status: number): object {
  const codes = codesOf(status);
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code][1]}`).join('. '),
    headers: headerRefs([...EVERY_HEADER, ...CREDENTIAL_HEADERS, ...(MORE[status] ?? [])]),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(codes.map((code) => [code, { value: example(code) }])),
      },
    },
  };
}

/** Every error status. */
export const REFUSAL_STATUSES: readonly number[] = [
  ...new Set(Object.values(PROBLEMS).map(([status]) => status)),
];
