import type pg from 'pg';
import { addPrice, commit, putPoints } from './sample-writes.ts';

/** Commits new values, and prices before and after the cursor of a reader. */
export const commitConcurrently = (pool: pg.Pool, round: number): Promise<number> =>
  commit(pool, async (client) => {
    await client.query(`update series set mid = mid + 1, low = null, high = null,
      corrections = corrections + 1 where date >= '2026-06-01' and price_id % 3 = ${round % 3}`);
    await client.query(`update price set name = name || '.', region_id = null
      where id % 7 = ${round % 7}`);
    for (const code of [`AA-${round}`, `ZZ-${round}`]) {
      await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: 'nickel' });
      await putPoints(client, code, ['2026-06-30', null, '5', null]);
    }
  });
