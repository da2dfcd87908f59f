import type t from 'tap';
import type { BookCounts } from '../../src/book/place.ts';
import { randomOf } from '../conversion/support.ts';
import { forAll, valuesOf } from '../support/any-request.ts';
import { testDatabase } from '../support/database.ts';
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
const REQUESTS_A_ROUND = 52;

type Test = Pick<typeof t, 'teardown' | 'equal' | 'ok'>;

/** Asks both; tells what differs. */
export async function compareOne(test: Test, twins: Twins, asked: BookRequest): Promise<number> {
  const [kept, plain] = await Promise.all([
    answerOf(twins.kept, asked),
    answerOf(twins.plain, asked),
  ]);
  const isSame =
    kept.status === plain.status &&
    kept.said.join('\n') === plain.said.join('\n') &&
    kept.body.equals(plain.body);
  if (!isSame) test.equal(kept.body.toString(), plain.body.toString(), JSON.stringify(asked));
  return plain.status;
}

/**
 * Random requests, and between them commits of every kind: with a book and without one the
 * answers are the same, byte for byte.
 */
export async function compareTwins(
  test: Test,
  { seed, env = {} }: { seed: number; env?: Readonly<Record<string, string>> },
): Promise<BookCounts> {
  const database = await testDatabase(test, { seeded: true });
  const twins = await twinsOn(test, database, env);
  await fill(twins);
  const random = randomOf(seed);
  const any = anyBookRequest(random);
  const disturb = disturber(random);
  const [values, by] = [await valuesOf(database), await filterValuesOf(twins)];
  const statuses = new Map<number, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    await disturb(database.pool);
    const all = Array.from({ length: REQUESTS_A_ROUND }, () => any(values, by));
    await forAll(all, async (asked) => {
      const status = await compareOne(test, twins, asked);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
  }
  const asked = JSON.stringify([...statuses]);
  test.ok((statuses.get(200) ?? 0) > 500 && (statuses.get(400) ?? 0) > 20, asked);
  return twins.book.counts;
}
