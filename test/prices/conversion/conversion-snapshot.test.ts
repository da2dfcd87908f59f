import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { addPrice, commit, putPoints, putRates } from '../../support/prices/sample-writes.ts';

const COMMITS = 60;
const READERS = 4;
const CODE = 'S-1';

t.test('prices and rates of an answer are of one revision, whatever is committed', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { pool } = database;
  const service = await serviceOn(t, database);
  // The price in dollars and the dollars for a euro change together: in euro it is always 1.
  const mark = (number: number) =>
    commit(pool, async (client) => {
      if (number === 1) await addPrice(client, { code: CODE, currency: 'USD', unit: 'tonne' });
      await putPoints(client, CODE, ['2026-06-30', null, String(number), null]);
      await putRates(client, 'ECB', 'USD', { '2026-06-30': String(number) });
    });
  await mark(1);
  const seen = new Map<string, string>();
  let isWriting = true;
  const read = async () => {
    while (isWriting) {
      const { json } = await service.post('nickel', {
        filters: { codes: [CODE] },
        options: { currency: 'EUR', includeSeries: true, includeSummary: true },
      });
      const [{ series, summary }] = json.data;
      t.same([series[0].mid, summary.latest.mid], [1, 1], json.$metadata.revision);
      const rate = series[0].fx.from;
      t.equal(seen.get(json.$metadata.revision) ?? rate, rate, 'and one for all of a revision');
      seen.set(json.$metadata.revision, rate);
    }
  };
  const write = async () => {
    for (let number = 2; number <= COMMITS || seen.size < 10; number += 1) await mark(number);
    isWriting = false;
  };
  await Promise.all([write(), ...Array.from({ length: READERS }, read)]);
  t.ok(seen.size >= 10, `${seen.size} revisions`);
});
