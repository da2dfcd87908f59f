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
  304: { description: 'Nothing changed since the answer that If-None-Match names', type: 'null' },
} as const;

/** `POST /v3/prices/<slug>`. */
export const postOperation = (market: Market): Operation => ({
  operationId: `post${pascal(market.slug)}Prices`,
  tags: ['Prices'],
  summary: `Prices of ${inSentence(market.name)}`,
  description: `Filters: ${filtersOf(market).map(code).join(', ')}; or \`codes\` without these.`,
  security: either([scopeOf(market.slug)]),
});

/** `GET /v3/prices/<slug>`. */
export const readOperation = (market: Market): Operation => ({
  operationId: `get${pascal(market.slug)}Prices`,
  tags: ['Prices'],
  summary: `Prices of ${inSentence(market.name)}, by address`,
  description: 'As the POST; repeat a parameter for a list.',
  security: either([scopeOf(market.slug)]),
});

/** `GET /v3/prices/<slug>/filters`. */
export const valuesOperation = (market: Market): Operation => ({
  operationId: `get${pascal(market.slug)}Filters`,
  tags: ['Discovery'],
  summary: `Filter values of ${inSentence(market.name)}`,
  description: 'The values of each filter, and how many prices have each.',
  security: either([scopeOf(market.slug)]),
});

export const listOperation: Operation = {
  operationId: 'getMarkets',
  tags: ['Discovery'],
  summary: 'The markets',
  description: paragraphs([
    'Every market with its scope, filters, number of prices and days covered, and whether the',
    'credential of this request opens it.',
  ]),
  security: either([]),
};

export const changesOperation: Operation = {
  operationId: 'getChanges',
  tags: ['Changes'],
  summary: 'What changed',
  description: paragraphs(
    [
      'Every change of a point or of the description of a price, in the order of the commits,',
      'with its value before and after. The feed only grows and has no gap: a reader that goes on',
      'with `after` set to the `nextSeq` of the page before, or to the `seq` of the last change',
      'that it has worked off, sees every change exactly once, wherever it stopped.',
    ],
    [
      'With `wait` an answer that would be empty waits for the first change, and is a 204 when',
      'none comes; without it, `data` is empty. All name the position to go on from in',
      '`x-next-seq`. As NDJSON each line is a change.',
    ],
    [
      'Only changes of markets that the credential opens are told; the position goes on past those',
      'of others. A position belongs to the markets that it was read for: read from the beginning',
      'what is to be known of a market that was opened later. Renamed reference data and exchange',
      'rates are no changes of the feed.',
    ],
  ),
  // The scope of any market is sufficient.
  security: SCOPES.flatMap((scope) => either([scope])),
};

const reference = (operationId: string, summary: string, description: string): Operation => ({
  operationId,
  tags: ['Discovery'],
  summary,
  description,
  security: either([]),
});

export const searchOperation = reference(
  'searchPrices',
  'Find prices',
  paragraphs(
    [
      'Finds prices over all markets that the credential opens, by words of their codes, names,',
      'products, aliases, formulas, places and other attributes. All words must match, as words,',
      'as beginnings of words, or inside of words; the case and accents do not count. A code that',
      'is the text comes first, then codes that begin with it, then the best matches of words.',
    ],
    [
      'Where no price has all words, one typing error in each word is forgiven, and of three and',
      'more words one may be missing; `$metadata.suggestions` then names texts to search for',
      'instead. A text without a letter or a digit finds nothing.',
    ],
  ),
);

export const meOperation = reference(
  'getMe',
  'The caller',
  paragraphs([
    'Which credential was sent, the markets that it opens, its limits, and when it ends.',
  ]),
);

export const currenciesOperation = reference(
  'getCurrencies',
  'Currencies',
  paragraphs([
    'The currencies that prices are in or can be converted to, with the days for which the source',
    'of exchange rates has a rate.',
  ]),
);

export const unitsOperation = reference(
  'getUnits',
  'Units of measure',
  paragraphs([
    'The units that prices are for or can be converted to. Units convert inside one dimension',
    'only, by their exact factors: price per B = price per A × factor of B / factor of A.',
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
      'Whether the service can answer, its version, and when the newest price was published.',
      '`degraded` means that it runs without any price, or without the source of exchange rates',
      'that it was told to use: then no currency is converted.',
    ]),
  );

export const readyOperation: Operation = open(
  'ready',
  'Health',
  'Readiness',
  paragraphs([
    'For load balancers: 200 when requests can be sent here. `schema_outdated` means that the',
    'operator has to run the migrations, `shutting_down` that the service stops.',
  ]),
);

export const liveOperation: Operation = open(
  'live',
  'Health',
  'Liveness',
  'For process supervisors: 200 while the process runs, whatever the state of the database.',
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
  'The service in short, for language models',
  paragraphs([
    'Markdown of at most 8 KB: authentication, requests, the filters of each market, options,',
    'conversion, paging and all error codes.',
  ]),
);
