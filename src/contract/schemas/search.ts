import Type, { type TSchema } from 'typebox';
import { MARKETS } from '../../catalog/markets.ts';
import {
  anyPriceReferences,
  closed,
  Instant,
  LastAssessedAt,
  LatestPublishedAt,
  NextExpectedAt,
  open,
  openWord,
  PayableReference,
  PriceCode,
  ref,
  textOrNull,
  word,
} from './components.ts';
import { PRINTABLE } from './options.ts';

/** Maximum number of characters of a search text. */
const TEXT_MAX = 128;
/** Maximum and default number of results in a response. */
const RESULTS_MAX = 500;
export const RESULTS = 20;

/** The ways in which a search word can match, the best first. */
const MATCHES = ['exact', 'prefix', 'inside', 'similar'] as const;

/** The query of `GET /v3/search`. */
export const SearchQuery = closed({
  q: Type.String({
    minLength: 1,
    maxLength: TEXT_MAX,
    pattern: PRINTABLE,
    description:
      'The text to find: words of a code, name, product, alias, formula, place or another ' +
      'attribute, in any order; the last one may be its beginning',
    examples: ['CP-NI-0003', 'briquette rotterdam'],
  }),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: RESULTS_MAX,
      description: `Maximum number of results; default ${RESULTS}`,
    }),
  ),
});

const Matched = open(
  {
    field: Type.String({
      description:
        'The attribute: a member of the result, `alias` or `chemicalCode` of its product, or ' +
        '`market`',
    }),
    value: Type.String({ description: 'Its text' }),
    match: word(MATCHES, {
      description:
        'The match of a search word: a whole word, the beginning of a word, a part of a word, or ' +
        'a word with a typing error',
    }),
  },
  { $id: 'Matched', description: 'A matching attribute' },
);

const SearchResult = open(
  {
    market: openWord(
      MARKETS.map(({ slug }) => slug),
      { description: 'Slug of the market' },
    ),
    code: ref(PriceCode),
    name: Type.String(),
    shortName: textOrNull,
    matched: Type.Array(ref(Matched), {
      description: 'The best match of each search word, each attribute once',
    }),
    lastAssessedAt: ref(LastAssessedAt),
    latestPublishedAt: ref(LatestPublishedAt),
    nextExpectedAt: ref(NextExpectedAt),
    ...anyPriceReferences,
    reference: ref(PayableReference),
  },
  { $id: 'SearchResult', description: 'A price; it has the dimensions of its market' },
);

/** The answer of `GET /v3/search`. */
export const SearchResults = open(
  {
    $metadata: open({
      revision: Type.String({ description: 'Revision of the readable markets, opaque' }),
      asOf: Instant('Commit time of that revision'),
      count: Type.Integer({ minimum: 0, description: 'Number of results in this response' }),
      total: Type.Integer({ minimum: 0, description: 'Number of prices that match' }),
      approximate: Type.Boolean({
        description: 'True if nothing matches the text as written, but something similar',
      }),
      suggestions: Type.Array(Type.String(), {
        maxItems: 3,
        description: 'Alternative search texts, if nothing matches the text as written',
      }),
    }),
    data: Type.Array(ref(SearchResult), { description: 'The best match first' }),
  },
  { $id: 'SearchResults' },
);

export const SEARCH_COMPONENTS: readonly TSchema[] = [Matched, SearchResult, SearchResults];
