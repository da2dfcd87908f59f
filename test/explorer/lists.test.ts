import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, type NewPoint, putPoints } from '../support/prices/sample-writes.ts';
import { explorerOn, words } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });

/** Days of assessments, newest first, and what the lists show of the changes. */
const PRICES = [
  ['0-DAY', ['2026-09-30', '2026-08-28', '2025-09-30'], '+50.0 %', '+200.0 %'],
  ['0-WEEK', ['2026-09-24', '2026-08-20', '2025-09-18'], '+50.0 %', '+200.0 %'],
  ['0-MONTH', ['2026-09-29', '2026-08-28', '2025-09-29'], '+50.0 %', '+200.0 %'],
  // A month before 30 September is 30 August, a day before the assessment of August.
  ['0-MONTH-END', ['2026-09-30', '2026-08-31', '2026-07-31'], '+200.0 % since 2026-07-31', '–'],
  ['0-QUARTER', ['2026-09-30', '2026-06-30', '2025-09-30'], '+50.0 % since 2026-06-30', '+200.0 %'],
  [
    '0-YEAR',
    ['2026-08-31', '2025-12-31', '2024-12-31'],
    '+50.0 % since 2025-12-31',
    '+200.0 % since 2024-12-31',
  ],
  ['0-NEW', ['2026-09-30'], '–', '–'],
] as const;

/** A market for each price, because the overview shows one price of a market. */
const MARKETS = [
  'nickel',
  'copper',
  'aluminium',
  'cobalt',
  'lithium',
  'natural-graphite',
  'recycling',
];

const VALUES = ['300', '200', '100'];

await commit(database.pool, async (client) => {
  for (const [at, [code, days]] of PRICES.entries()) {
    const points = days.map((day, index): NewPoint => [day, null, `${VALUES[index]}`, null]);
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: `${MARKETS[at]}` });
    await putPoints(client, code, ...points);
  }
});

const explorer = await explorerOn(t, database);

t.test('a change has its base day where that is not about the named span back', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  for (const [code, , month, year] of PRICES) {
    const row = page.locator('.overview tbody tr', { hasText: `Price ${code}` });
    const cells = await row.locator('td.number').allInnerTexts();
    t.same(cells.slice(-2).map(words), [month, year], `the overview, ${code}`);
  }
  for (const [at, [code, , month]] of PRICES.entries()) {
    await show(`market=${MARKETS[at]}`);
    const row = page.locator('.list tbody tr', { hasText: `Price ${code}` });
    const cells = await row.locator('td.number').allInnerTexts();
    t.equal(words(`${cells.at(-1)}`), month, `the market, ${code}`);
  }
});

for (const [width, height] of [
  [1280, 900],
  [390, 740],
] as const) {
  t.test(`"Show chart" is on the screen as soon as a price is chosen, ${width} px`, async (t) => {
    const { page, show } = await explorer.open(t, { viewport: { width, height } });
    await show('market=nickel');
    const boxes = page.getByRole('checkbox', { name: /^Choose / });
    const list = await page.locator('.list').boundingBox();
    t.ok(Number(list?.height) > height, 'the list is longer than the screen');
    await boxes.first().check();
    await boxes.nth(5).check();
    const chart = page.getByRole('link', { name: 'Show chart' });
    const isSeen = `(() => {
      const box = document.querySelector('.choice a').getBoundingClientRect();
      const seen = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      return seen?.textContent === 'Show chart';
    })()`;
    t.ok(await page.evaluate(isSeen), 'while the beginning of the list is shown');
    // Tab goes through the rows, and the bar covers none that has the focus.
    await boxes.first().focus();
    for (let at = 0; at < 40; at += 1) {
      await page.keyboard.press('Tab');
      const isCovered = await page.evaluate(`(() => {
        const bar = document.querySelector('.choice');
        const { activeElement } = document;
        if (activeElement.closest('.list') === null) return false;
        const { bottom } = activeElement.getBoundingClientRect();
        return bottom > bar.getBoundingClientRect().top;
      })()`);
      if (isCovered) t.fail(`the focus is behind the bar after ${at + 1} steps`);
    }
    await chart.click();
    await page.waitForURL(/price=/);
  });
}

t.test('the results of a search close by a click elsewhere and by Tab', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const field = page.getByRole('searchbox');
  const results = page.locator('.results');
  const search = async (): Promise<void> => {
    await field.fill('CP-NI-0003');
    await results.locator('a', { hasText: 'CP-NI-0003' }).waitFor();
  };
  await search();
  await page.locator('.brand').hover();
  await page.locator('main').click({ position: { x: 5, y: 700 } });
  await results.waitFor({ state: 'detached' });
  t.equal(await field.inputValue(), 'CP-NI-0003', 'the text stays');
  await field.focus();
  await results.waitFor();
  const links = await results.locator('a, button').count();
  for (let at = 0; at < links; at += 1) {
    await page.keyboard.press('Tab');
    t.equal(await results.count(), 1, 'the results are open while one has the focus');
  }
  await page.keyboard.press('Tab');
  await results.waitFor({ state: 'detached' });
  await page.keyboard.press('Shift+Tab');
  await results.waitFor();
  await page.keyboard.press('Shift+Tab');
  await results.waitFor({ state: 'detached' });
});

t.test('a click within the results of a search does not close them', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.getByRole('searchbox').fill('nikel');
  const hint = page.locator('.results', { hasText: 'Did you mean' });
  await hint.getByText('Did you mean').click({ position: { x: 3, y: 3 } });
  t.equal(await hint.count(), 1);
});
