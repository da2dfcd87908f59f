import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, putPoints, putRates } from '../support/prices/sample-writes.ts';
import { explorerOn } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
await commit(database.pool, async (client) => {
  await putRates(client, 'ECB', 'USD', { '2026-06-01': '1.25' });
  for (const [index, market] of ['nickel', 'copper'].entries()) {
    const code = `M-${market}`;
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market });
    const days = ['2026-05-29', '2026-06-01', '2026-06-02', '2026-06-30'] as const;
    await putPoints(
      client,
      code,
      ...days.slice(index).map((day) => [day, null, '100', null] as const),
    );
  }
});
const explorer = await explorerOn(t, database);

t.test('missing rates of several markets are one remark, with the sum of the points', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/M-nickel&price=copper/M-copper&currency=EUR');
  const remarks = page.locator('details.note');
  t.equal(await remarks.count(), 1);
  t.equal(await remarks.locator('summary').innerText(), 'One remark of the service');
  t.match(await remarks.locator('li').allInnerTexts(), [
    'No rate of USD for 3 of 7 points, from 2026-05-29 to 2026-06-30 ' +
      '(nickel 2 of 4, copper 1 of 3); the newest one is of 2026-06-01',
  ]);
});
