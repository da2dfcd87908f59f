import type t from 'tap';
import type { BookCounts } from '../../src/book/book.ts';
import { randomOf } from '../conversion/support.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { forAll, valuesOf } from '../support/fuzz/any-request.ts';
import {
  answerOf,
  anyBookRequest,
  type BookRequest,
  disturber,
  fill,
  filterValuesOf,
  type Twins,
  twinsOn,
} from './support.ts';

const ROUNDS = 20;
const REQUESTS_A_ROUND = 40;
/** Requests of a round that are sent twice more, and repeated requests of earlier rounds. */
const REPEATED_A_ROUND = 8;
/** Requests of a round whose next page is requested. */
const FOLLOWED_A_ROUND = 20;

type Test = Pick<typeof t, 'teardown' | 'equal' | 'ok'>;

/** Sends a request to both services and reports a difference. */
export async function compareOne(test: Test, twins: Twins, asked: BookRequest): Promise<number> {
  const [cached, plain] = await Promise.all([
    answerOf(twins.cached, asked),
    answerOf(twins.plain, asked),
  ]);
  const isSame =
    cached.status === plain.status &&
    cached.said.join('\n') === plain.said.join('\n') &&
    cached.body.equals(plain.body);
  if (!isSame) test.equal(cached.body.toString(), plain.body.toString(), JSON.stringify(asked));
  return plain.status;
}

/** Requests that continue an answer: its next page, and the same request at its revision. */
async function followersOf({ cached }: Twins, asked: BookRequest): Promise<BookRequest[]> {
  const { options } = asked as { options: Readonly<Record<string, unknown>> };
  if (options['asOf'] !== undefined || options['revision'] !== undefined) return [];
  const { status, headers, body } = await answerOf(cached, asked);
  if (status !== 200) return [];
  const isJson = asked.accept === 'application/json';
  const cursor = isJson
    ? JSON.parse(body.toString()).$metadata.nextCursor
    : headers['x-next-cursor'];
  const revision = headers['x-data-revision'];
  const more = [{ revision }, ...(cursor ? [{ cursor }, { cursor, revision }] : [])];
  return more.map((each) => ({ ...asked, options: { ...options, ...each } }));
}

/**
 * Random requests, and between them commits of every kind: with a book and without one the
 * answers are the same, byte for byte.
 */
export async function compareTwins(
  test: Test,
  { seed, env = {} }: { seed: number; env?: Readonly<Record<string, string>> },
): Promise<BookCounts & { readonly repeats: number }> {
  const database = await testDatabase(test, { seeded: true });
  // The samples are values of days, which every value of `rates` converts equally.
  await inRevision(
    database.pool,
    "update price set observes = 'month-mean' where id % 3 = 0",
    "update price set observes = 'year-mean' where id % 7 = 0",
  );
  const twins = await twinsOn(test, database, env);
  await fill(twins);
  const random = randomOf(seed);
  const any = anyBookRequest(random);
  const commitConcurrently = disturber(random);
  const [values, by] = [await valuesOf(database), await filterValuesOf(twins)];
  const statuses = new Map<number, number>();
  const requests: BookRequest[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await commitConcurrently(database.pool);
    const all = Array.from({ length: REQUESTS_A_ROUND }, () => any(values, by));
    const compare = async (request: BookRequest) => {
      const status = await compareOne(test, twins, request);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    };
    await forAll(all, compare);
    const followers = (
      await Promise.all(all.slice(0, FOLLOWED_A_ROUND).map((each) => followersOf(twins, each)))
    ).flat();
    // They read the newest revision now, and a past one when a later round repeats them.
    await forAll(followers, compare);
    requests.push(...all, ...followers);
    const older = Array.from(
      { length: REPEATED_A_ROUND },
      () => requests[Math.floor(random() * requests.length)] as BookRequest,
    );
    await forAll(older, compare);
    // The second of equal requests is cached.
    for (let time = 0; time < 2; time += 1) await forAll(all.slice(0, REPEATED_A_ROUND), compare);
  }
  const said = JSON.stringify([...statuses]);
  test.ok((statuses.get(200) ?? 0) > 500 && (statuses.get(400) ?? 0) > 20, said);
  return { ...twins.book.counts, repeats: twins.answers.state.repeats };
}
