import type { Reply, Service } from '../support/http/service.ts';

/** Asks the search of a service, with its own key or another. */
export const asking =
  (service: Service) =>
  (q: string, more: { limit?: number; key?: string } = {}): Promise<Reply> => {
    const limit = more.limit === undefined ? '' : `&limit=${more.limit}`;
    return service.request({
      method: 'GET',
      url: `/v3/search?q=${encodeURIComponent(q)}${limit}`,
      headers: { 'x-api-key': more.key ?? service.key },
    });
  };

interface Result {
  readonly code: string;
  readonly market: string;
  readonly name: string;
  readonly matched: readonly { field: string; value: string; match: string }[];
  readonly product: Readonly<Record<'name' | 'alias' | 'chemicalCode', string>>;
  readonly [member: string]: unknown;
}

/** The results of an answer. */
export const resultsIn = ({ json }: Reply): readonly Result[] => json.data;

export const codesIn = (reply: Reply): string[] => resultsIn(reply).map(({ code }) => code);
