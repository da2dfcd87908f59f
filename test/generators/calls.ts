// Calls the service with each generated client; the recipe has most of the calls.
import { Api } from './made/api';
import { getNickelPrices } from './made/hey/sdk.gen';
import type { NickelFilters, Problem } from './made/hey/types.gen';
import * as orval from './made/orval';
import { counts } from './made/recipe';
import { PostNickelPricesBody, PostNickelPricesResponse } from './made/zod';

const { COMMODITY_PRICES_URL: baseUrl = '', COMMODITY_PRICES_KEY: key = '' } = process.env;
const headers = { 'x-api-key': key };
const query = { regions: ['Europe', 'North America'], includeSeries: true, decimalsAsText: true };

/** Never called: a wrong request does not compile. */
export function wrong(): NickelFilters[] {
  // @ts-expect-error nickel has no grades
  const unknown: NickelFilters = { grades: ['Battery'] };
  // @ts-expect-error codes go without other filters
  const both: NickelFilters = { codes: ['CP-NI-0001'], regions: ['Europe'] };
  return [unknown, both];
}

/** Never called: a code of a later release is a text. */
export const codeOf = ({ code }: Problem): string => code;

async function main(): Promise<void> {
  const recipe = await counts();
  const read = await getNickelPrices({ query });
  const answer = await orval.getNickelPrices(query, { headers });
  const text = JSON.parse('stream' in answer ? await answer.stream.text() : 'null');
  const api = new Api({ baseUrl, baseApiParams: { headers } });
  const refusal = await api.v3
    .getNickelPrices({ regions: ['Nowhere'], strict: true })
    .catch((error) => error);

  const checked = PostNickelPricesResponse.parse({ ...text, added: true });
  const isLegal = (body: object): boolean => PostNickelPricesBody.safeParse(body).success;
  const filters = { regions: ['Europe'] };
  console.log(
    JSON.stringify({
      recipe,
      read: [read.data, text, checked],
      refusal: refusal.error,
      isLegal: [
        { filters },
        { filters: { codes: ['a'] } },
        { filters: { codes: ['a'], ...filters } },
        { filters: { regions: 'Europe' } },
      ].map(isLegal),
    }),
  );
}

void main();
