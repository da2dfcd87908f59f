import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { marketsOpenTo } from '../../catalog/scopes.ts';
import { flatReader } from '../../contract/request/query.ts';
import { ref } from '../../contract/schemas/components.ts';
import { RESULTS, SearchQuery, SearchResults } from '../../contract/schemas/search.ts';
import { revisionText } from '../../db/revisions.ts';
import { brokenRules } from '../../errors.ts';
import type { Readers } from '../../prices/answer/answer.ts';
import { indexReader } from '../../prices/search/reader.ts';
import { type Result, searchPrices } from '../../prices/search/search.ts';
import { checkAcceptsJson } from '../reply/accept.ts';
import { sendTagged } from '../reply/send.ts';
import { NOT_MODIFIED, searchOperation } from './operations.ts';

interface SearchParameters {
  readonly q: string;
  readonly limit?: number;
}

const read = flatReader(SearchQuery);

/** The validated query. @throws Problem `validation_failed` with every violation */
function queryOf(url: string): SearchParameters {
  const { values, errors } = read(url);
  if (errors.length > 0) throw brokenRules(errors);
  return values as unknown as SearchParameters;
}

/** A result with its members in the order of the contract. */
function shownResult({ market, price, matched }: Result) {
  const { code, name, shortName, ...described } = price;
  return { market, code, name, shortName, matched, ...described };
}

/** `GET /v3/search`: finds prices in the markets that the credential may read. */
export function searchRoute(app: FastifyInstance, readers: Readers): void {
  const indexesOf = indexReader(readers);

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { work, principal } = request.context;
    const { q, limit = RESULTS } = queryOf(request.url);
    // Unauthorized markets are not read, so neither counts nor response times reveal them.
    const open = marketsOpenTo(principal?.scopes ?? new Set());
    const newest = await work.until(request.context.newest);
    const { data: dataRevision, indexes } = await work.until(indexesOf(open, newest));
    const { results, total, isApproximate, suggestions } = searchPrices(indexes, q, limit);
    const revision = revisionText(dataRevision);
    const $metadata = {
      revision,
      asOf: dataRevision.committedAt,
      count: results.length,
      total,
      approximate: isApproximate,
      suggestions,
    };
    reply.header('x-data-revision', revision);
    const body = JSON.stringify({ $metadata, data: results.map(shownResult) });
    return sendTagged(request, reply, 'application/json; charset=utf-8', body);
  }

  app.get('/v3/search', {
    config: { access: 'any' },
    preParsing: async (request) => checkAcceptsJson(request),
    schema: {
      ...searchOperation,
      querystring: SearchQuery,
      response: {
        200: { description: 'The matching prices', ...ref(SearchResults) },
        ...NOT_MODIFIED,
      },
    },
    handler,
  });
}
