import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit } from '../support/prices/sample-writes.ts';
import { explorerOn } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });

// A price that is no sample. Its points were published today, long after the others of its market.
await commit(database.pool, async (client) => {
  await addPrice(client, { code: 'LOADED', currency: 'USD', unit: 'tonne' });
  await client.query(
    `insert into series (price_id, date, low, mid, high, published_at)
      select price.id, date '2026-07-15' - n, 99.5 + n, 100 + n, 100.5 + n, now()
      from price, generate_series(0, 399) as n where code = 'LOADED'`,
  );
});

const explorer = await explorerOn(t, database);

t.test('the date beside the value of a market is the day of that value', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const row = page.locator('.overview tbody tr').filter({
    has: page.getByRole('link', { name: 'Nickel', exact: true }),
  });
  t.equal(await row.locator('.latest').innerText(), '2026-06-30');
  t.equal((await row.locator('.strong').innerText()).trim(), '18800');
});

t.test('the time axis has no ticks without a label beyond the last day', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0003&from=2026-01-01');
  const ticks = await page.evaluate(`(() => {
    const [{ ctx, bbox, data, valToPos }] = document.querySelector('.chart').chart.plots;
    const last = Math.ceil(valToPos(data[0].at(-1), 'x', true)) + 2;
    const below = Math.round(bbox.top + bbox.height) + 2;
    const coloured = (left, width) => {
      const { data } = ctx.getImageData(left, below, width, 1);
      return data.filter((value, at) => at % 4 === 3 && value > 0).length;
    };
    return [coloured(bbox.left, last - bbox.left), coloured(last, bbox.left + bbox.width - last)];
  })()`);
  const [before = 0, beyond] = ticks as number[];
  t.ok(before > 0, 'the ticks of the days');
  t.equal(beyond, 0);
});
