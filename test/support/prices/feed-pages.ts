import type t from 'tap';
import { testDatabase } from '../database/database.ts';
import { writeMinimalData } from '../database/minimal-data.ts';
import { type Service, serviceOn } from '../http/service.ts';
import { changesOf, type WireChange } from './feed-oracle.ts';
import { publisherOn } from './random-commits.ts';

type FeedParameters = Readonly<Record<string, string | number>>;

/** Requests changes, with further parameters as text; fails if the answer violates openapi.yaml. */
export const get = (
  service: Service,
  query: FeedParameters = {},
  headers: Record<string, string> = {},
  more = '',
) => {
  const search = Object.entries(query).map(([name, value]) => `${name}=${value}`);
  if (more !== '') search.push(more);
  const url = `/v3/changes${search.length > 0 ? `?${search.join('&')}` : ''}`;
  return service.request({ method: 'GET', url, headers });
};

/** Headers of a request for NDJSON. */
export const LINES = { accept: 'application/x-ndjson' };

/** A page as NDJSON, whose numbers keep every digit. */
export async function page(service: Service, query: FeedParameters = {}, more = '') {
  const reply = await get(service, query, LINES, more);
  if (reply.status !== 200) throw new Error(reply.text);
  return { changes: changesOf(reply.text), next: reply.headers['x-next-seq'] ?? '', reply };
}

/** Reads all pages from a position on. */
export async function readAll(
  service: Service,
  limit: number,
  after?: string,
): Promise<WireChange[]> {
  const all: WireChange[] = [];
  let at = after;
  for (;;) {
    const { changes, next } = await page(service, { limit, ...(at ? { after: at } : {}) });
    all.push(...changes);
    at = next;
    if (changes.length === 0) return all;
  }
}

/** A database with random commits of every kind. */
export async function published(test: Pick<typeof t, 'teardown'>, seed: number, commits: number) {
  const database = await testDatabase(test);
  await writeMinimalData(database.pool);
  const publisher = await publisherOn(database.pool, seed);
  for (let turn = 0; turn < commits; turn += 1) await publisher.transact();
  return { database, service: await serviceOn(test, database), publisher };
}
