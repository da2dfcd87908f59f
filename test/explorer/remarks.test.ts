import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, putPoints, putRates } from '../support/prices/sample-writes.ts';
import { explorerOn, RECORD_WRITTEN, settled } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
await commit(database.pool, async (client) => {
  await putRates(client, 'ECB', 'USD', { '2026-06-01': '1.25' });
  await putRates(client, 'ECB', 'CNY', { '2026-06-01': '7.8' });
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
  await client.query(`update price set specification =
    '[{"name": "source", "value": "The Bulletin"}, {"name": "credit", "value": "(c) Bulletin"}]'
    where code = 'M-copper'`);
});
const explorer = await explorerOn(t, database);

t.test('missing rates of several markets are one remark, with the sum of the points', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/M-nickel&price=copper/M-copper&currency=EUR');
  const remarks = page.locator('details.note');
  t.equal(await remarks.count(), 1);
  const summary = remarks.locator('summary');
  t.match(await summary.innerText(), /^1 remark: No rate of USD for 3 of 7 points/);
  await summary.click();
  t.match(await remarks.locator('li').allInnerTexts(), [
    'No rate of USD for 3 of 7 points, from 2026-05-29 to 2026-06-30 ' +
      '(nickel 2 of 4, copper 1 of 3); the newest one is of 2026-06-01',
  ]);
});

for (const width of [1280, 390]) {
  t.test(`remarks take one line until they are opened, ${width} px`, async (t) => {
    const { page, show } = await explorer.open(t, { viewport: { width, height: 844 } });
    for (const view of [
      'price=nickel/M-nickel&price=nickel/CP-NI-0001&currency=EUR',
      'market=nickel',
      'code=CP-NI-0001&market=nickel',
      '',
    ]) {
      await show(view);
      const remarks = page.locator('.remarks');
      t.equal(await remarks.count(), 1, view);
      const closed = await remarks.boundingBox();
      t.ok(Number(closed?.height) <= 45, `${view}: ${closed?.height} px`);
      await remarks.locator('summary').click();
      const open = await remarks.boundingBox();
      t.ok(Number(open?.height) > Number(closed?.height), view);
      t.ok(await remarks.locator('li').first().isVisible());
    }
  });
}

t.test('VAT is a mark beside the name and the first remark on converted numbers', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const view of ['price=nickel/CP-NI-0002&price=nickel/CP-NI-0003', 'market=nickel']) {
    await show(`${view}&currency=EUR`);
    const row = (code: string) => page.locator('.list tbody tr', { hasText: code });
    const marks = async (code: string) => (await row(code).locator('.mark').allInnerTexts()).join();
    t.match(await marks('CP-NI-0002'), 'VAT 13% included', view);
    t.notMatch(await marks('CP-NI-0003'), 'VAT', view);
  }
  await show('price=nickel/CP-NI-0002&price=nickel/CP-NI-0003&currency=EUR');
  const summary = page.locator('.remarks summary');
  t.match(await summary.innerText(), /^\d remarks: CP-NI-0002 includes VAT/);
});

t.test('a newest day without a rate is named beside the newest value with one', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/M-nickel&currency=EUR');
  const row = page.locator('.readout tbody tr').first();
  t.match(await row.innerText(), /no rate yet for 2026-06-30/);
  // 100 USD at 1.25.
  t.match(await row.locator('.strong').innerText(), /^80(\.0+)?$/);
  await page.locator('.chart').focus();
  await page.keyboard.press('End');
  await settled(page);
  t.equal(await row.locator('.strong').innerText(), 'no rate');
});

t.test(
  'a picture and a citation have the source with its credit, a picture also the missing rates',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show('price=copper/M-copper&currency=EUR');
    await page.evaluate(RECORD_WRITTEN);
    await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'PNG of the chart' }).click(),
    ]);
    const texts = String(await page.evaluate('written.join(" ")'));
    t.match(texts, 'source: The Bulletin, (c) Bulletin');
    t.match(texts, '1 value of 3 without a rate');
    t.match(texts, 'no rate of USD for 1 of 3 requested points: 2026-06-30');
    await show('code=M-copper&market=copper');
    t.match(await page.locator('.cite').innerText(), 'source: The Bulletin, (c) Bulletin');
  },
);
