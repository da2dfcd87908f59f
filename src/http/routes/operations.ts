import type { Market } from '../../catalog/markets.ts';
import { SCOPES, scopeOf } from '../../catalog/scopes.ts';
import { paragraphs } from '../../contract/schemas/components.ts';
import { filtersOf, pascal } from '../../contract/schemas/market.ts';

/** Metadata of an operation in the OpenAPI document. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
}

/** The security of an operation: either credential, with these scopes. */
const either = (scopes: readonly string[]) => [{ api_key: scopes }, { bearerAuth: scopes }];

/** The name of a market within a sentence: `lithium-ion battery`. */
const inSentence = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1);

const code = (name: string): string => `\`${name}\``;

/** Response of a GET if the cached answer of the client is current. */
export const NOT_MODIFIED = {
  304: { description: 'Not modified: the cached response of the client is current', type: 'null' },
} as const;

/** `POST /v3/prices/<slug>`. */
export const postOperation = (market: Market): Operation => ({
  operationId: `post${pascal(market.slug)}Prices`,
  tags: ['Prices'],
  summary: `Prices of ${inSentence(market.name)}`,
  description: `Filters: ${filtersOf(market).map(code).join(', ')}; or \`codes\` without them.`,
  security: either([scopeOf(market.slug)]),
});

/** `GET /v3/prices/<slug>`. */
export const readOperation = (market: Market): Operation => ({
  operationId: `get${pascal(market.slug)}Prices`,
  tags: ['Prices'],
  summary: `Prices of ${inSentence(market.name)}, by GET`,
  description: 'The same as the POST. Repeat a parameter for a list.',
  security: either([scopeOf(market.slug)]),
});

/** `GET /v3/prices/<slug>/filters`. */
export const valuesOperation = (market: Market): Operation => ({
  operationId: `get${pascal(market.slug)}Filters`,
  tags: ['Discovery'],
  summary: `Filter values of ${inSentence(market.name)}`,
  description: 'The values of each filter, with the number of prices of each.',
  security: either([scopeOf(market.slug)]),
});

export const listOperation: Operation = {
  operationId: 'getMarkets',
  tags: ['Discovery'],
  summary: 'The markets',
  description: paragraphs([
    'Every market with its scope. For markets that the credential can read, also the filters, the',
    'number of prices and the days covered.',
  ]),
  security: either([]),
};

export const changesOperation: Operation = {
  operationId: 'getChanges',
  tags: ['Changes'],
  summary: 'The change feed',
  description: paragraphs(
    [
      'Every change of a point or of the attributes of a price, in commit order, with its value',
      'before and after. The feed is append-only and has no gaps. Set `after` to the `nextSeq` of',
      'the previous page, or to the `seq` of the last change that you processed: you then receive',
      'every change exactly once, wherever you stopped. To follow from a snapshot, send',
      '`after=revision:` and its `$metadata.revision`. `after=latest` is an empty page with the',
      'position of now.',
    ],
    [
      'With `wait`, an empty page waits for the first change, and is a 204 if there is none in',
      'that time. Without it, `data` is empty. Every response returns the next position in',
      '`x-next-seq`. NDJSON has one change on each line.',
    ],
    [
      'The feed reports only changes of markets that the credential can read; the position skips',
      'the others. After the credential gains a market, read that market from the beginning: the',
      'position does not cover its earlier changes. Renamed reference data and exchange rates are',
      'not in the feed.',
    ],
  ),
  // The scope of any market is sufficient.
  security: SCOPES.flatMap((scope) => either([scope])),
};

export const calculationOperation: Operation = {
  operationId: 'calculate',
  tags: ['Calculations'],
  summary: 'Calculate what a contract pays',
  description: paragraphs([
    'A formula over prices, payables and exchange rates of periods and numbers of yours, exact, at',
    'one revision. It needs the scope of each market that an input belongs to. A percentage counts',
    'as hundredths; units are checked. The receipt recomputes every figure.',
  ]),
  // The inputs of a request decide which scopes it needs.
  security: either([]),
};

const reference = (operationId: string, summary: string, description: string): Operation => ({
  operationId,
  tags: ['Discovery'],
  summary,
  description,
  security: either([]),
});

/** `GET /v3/calendar`. */
export const calendarOperation: Operation = {
  operationId: 'getCalendar',
  tags: ['Discovery'],
  summary: 'Due days of prices',
  description: paragraphs(
    [
      'The days on which prices are due by their publication calendars, with the instant and the',
      'state of each: published, due, late, or closed with the holiday. Days beyond those that a',
      'calendar knows are not guessed: `reason` is then `calendar_unknown`.',
    ],
    [
      'As `text/calendar`, or with `format=ics`, each due day is an event; its id stays if a',
      'holiday moves it, and `SEQUENCE` grows. A calendar token in the parameter `token`, or as',
      'the password of Basic, opens this address alone.',
    ],
  ),
  security: [...SCOPES.flatMap((scope) => either([scope])), { calendar_token: [] }],
};

export const searchOperation = reference(
  'searchPrices',
  'Find prices',
  paragraphs(
    [
      'Finds prices in all markets that the credential can read, by words of their codes, names,',
      'products, aliases, formulas, places and other attributes. Every word must match a word, the',
      'beginning of a word, or a part of a word; case and accents are ignored. An equal code ranks',
      'first, then codes that begin with the text, then the best word matches.',
    ],
    [
      'If no price matches all words, one typing error in each word is allowed, and one of three',
      'or more words may be missing; `$metadata.suggestions` then lists alternative texts. A text',
      'without a letter or a digit finds nothing.',
    ],
  ),
);

export const meOperation = reference(
  'getMe',
  'The credential',
  'The credential of the request, the markets that it can read, its limits and its expiry.',
);

export const currenciesOperation = reference(
  'getCurrencies',
  'Currencies',
  paragraphs([
    'The currencies of prices and of conversions, with the first and last day for which the source',
    'of exchange rates has a rate.',
  ]),
);

export const unitsOperation = reference(
  'getUnits',
  'Units of measure',
  paragraphs([
    'The units of prices and of conversions. Units convert inside one dimension only, by their',
    'exact factors: price per B = price per A × factor of B / factor of A.',
  ]),
);

export const ratesOperation = reference(
  'getRates',
  'Exchange rates',
  paragraphs([
    'The rates between two currencies, day by day, as the source published both legs. A conversion',
    'uses the legs of the day of the assessment or the latest before it within 7 days.',
  ]),
);

const open = (operationId: string, tag: string, summary: string, description: string) =>
  ({ operationId, tags: [tag], summary, description, security: [] }) satisfies Operation;

/** A health route. */
export const healthOperation = (operationId: string, summary: string): Operation =>
  open(
    operationId,
    'Health',
    summary,
    paragraphs([
      'The health of the service, its version, and the time of the newest publication.',
      '`degraded` means that the service has no prices, or no usable exchange rates of the',
      'configured source; `reasons` says which.',
    ]),
  );

export const readyOperation: Operation = open(
  'ready',
  'Health',
  'Readiness',
  paragraphs([
    'For load balancers: 200 if this node accepts requests. `schema_outdated` means that the',
    'operator has to run the migrations, `shutting_down` that the service is stopping.',
  ]),
);

export const liveOperation: Operation = open(
  'live',
  'Health',
  'Liveness',
  'For process supervisors: 200 while the process runs, also without the database.',
);

/** A route of the OpenAPI document. */
export const documentOperation = (operationId: string, format: string): Operation =>
  open(
    operationId,
    'Documentation',
    `This document as ${format}`,
    `The OpenAPI 3.1 document of the service as ${format}.`,
  );

/** `/llms.txt`. */
export const llmsOperation: Operation = open(
  'llmsText',
  'Documentation',
  'Summary of the service for language models',
  paragraphs([
    'Markdown of at most 8 KB: authentication, requests, the filters of each market, options,',
    'conversion, paging and all error codes.',
  ]),
);
