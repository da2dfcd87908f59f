import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit } from '../support/prices/sample-writes.ts';
import { explorerOn, RECORD_WRITTEN } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });

// A price that is no sample. Its points were published today, long after the others of its market.
await commit(database.pool, async (client) => {
  await addPrice(client, { code: '0-LOADED', currency: 'USD', unit: 'tonne' });
  await client.query(
    `insert into series (price_id, date, low, mid, high, published_at)
      select price.id, date '2026-07-15' - n, 99.5 + n, 100 + n, 100.5 + n, now()
      from price, generate_series(0, 399) as n where code = '0-LOADED'`,
  );
});

const explorer = await explorerOn(t, database);

t.test('the date beside the value of a market is the day of that value', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const row = page.locator('.overview tbody tr').filter({
    has: page.getByRole('link', { name: 'Nickel', exact: true }),
  });
  t.equal(await row.locator('.latest .day').innerText(), '2026-07-15');
  t.equal((await row.locator('.strong').innerText()).trim(), '100');
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

const NOTE = /Sample data\..* invented for demonstration\. They are not market prices\./;

t.test(
  'every page says that sample prices are invented, and marks them among others',
  async (t) => {
    const { page, show } = await explorer.open(t);
    const note = page.locator('.remarks');
    const views = ['market=copper', 'price=copper/CP-CU-0001', 'code=CP-CU-0001&market=copper'];
    for (const view of views) {
      await show(view);
      t.match(await note.locator('summary').innerText(), 'Sample data', view);
      await note.locator('summary').click();
      t.match(await note.innerText(), NOTE, view);
      t.equal(await page.getByText('sample', { exact: true }).count(), 0, 'no marks among samples');
    }
    for (const view of ['', 'market=nickel', 'price=nickel/CP-NI-0001&price=nickel/0-LOADED']) {
      await show(view);
      await note.locator('summary').click();
      t.match(await note.innerText(), /marked “sample”/, view);
      const marked = await page.locator('tr:has(.mark)').allInnerTexts();
      t.ok(marked.length > 0, view);
      t.notOk(
        marked.some((each) => each.includes('0-LOADED')),
        view,
      );
    }
    await show('price=copper/CP-CU-0001&currency=EUR');
    await note.locator('summary').click();
    await page.getByText('The rates of SAMPLE are invented').waitFor();
    for (const view of ['price=nickel/0-LOADED', 'code=0-LOADED&market=nickel']) {
      await show(view);
      t.equal(await note.count(), 0, view);
    }
  },
);

t.test('the picture of a chart says that sample prices are invented', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const [code, isSample] of [
    ['CP-NI-0001', true],
    ['0-LOADED', false],
  ] as const) {
    await show(`price=nickel/${code}`);
    await page.evaluate(RECORD_WRITTEN);
    await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'PNG of the chart' }).click(),
    ]);
    const texts = String(await page.evaluate('written.join(" | ")'));
    t.match(texts, 'Commodity Prices Service');
    t.equal(/Sample data: the prices are invented/.test(texts), isSample, code);
  }
});
