import type { Page } from 'playwright-core';
import t from 'tap';
import { loadCalendarText } from '../../ingest/calendar/support.ts';
import { testDatabase } from '../../support/database/database.ts';
import { addPrice, commit, putPoints } from '../../support/prices/sample-writes.ts';
import { brokenRules } from '../../support/process/accessibility.ts';
import { explorerOn, keepPicture, settled, words } from '../../support/process/explorer.ts';
import { prices as command } from '../../support/process/programs.ts';

const database = await testDatabase(t, { seeded: true });
const { client, pool, url: DATABASE_URL } = database;

const daysAgo = (days: number): string =>
  new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/** Daily prices of copper with one point, this many days ago. */
const LAST = { 'LATE-CALENDAR': 20, 'LATE-FREQUENCY': 30, AWAITED: 0, FRESH: 1 } as const;

await commit(pool, async (writer) => {
  for (const [code, days] of Object.entries(LAST)) {
    await addPrice(writer, { code, currency: 'USD', unit: 'tonne', market: 'copper' });
    await writer.query(
      `update price set frequency_id = (select id from dimension_value
      where kind = 'frequency' and slug = 'daily') where code = $1`,
      [code],
    );
    await putPoints(writer, code, [daysAgo(days), null, '12345.67', null]);
  }
  await writer.query(`update series
    set published_at = case code when 'FRESH' then now() else now() - interval '20 days' end
    from price where price.id = price_id and code in ('FRESH', 'AWAITED')`);
});
await commit(pool, (writer) =>
  putPoints(writer, 'LATE-FREQUENCY', [daysAgo(30), null, '12300', null]),
);
await loadCalendarText(
  t,
  client,
  `calendars:
  every-day: { rule: daily, at: 00:30, zone: UTC }
prices:
  LATE-CALENDAR: every-day
  AWAITED: every-day
`,
);

const explorer = await explorerOn(t, database);

const cardOf = (page: Page, title: string) =>
  page.locator('.card').filter({ has: page.getByText(title, { exact: true }) });

for (const [width, height] of [
  [1280, 900],
  [390, 844],
] as const) {
  t.test(
    `the overview shows what is late, due, published and corrected, ${width} px`,
    async (t) => {
      const { page, show, faults } = await explorer.open(t, { viewport: { width, height } });
      await show('');
      const card = async (title: string) => {
        const found = cardOf(page, title);
        const summary = found.locator('summary');
        if ((await found.getAttribute('open')) === null) await summary.click();
        return words(await found.innerText());
      };
      const late = await card('Late');
      t.match(late, /^Late 2 prices Price LATE-CALENDAR LATE-CALENDAR due \S+ 00:30 UTC/);
      t.match(
        late,
        /LATE-FREQUENCY newest of \S+ by frequency$/,
        'marked as judged by its frequency',
      );
      t.match(await card('Due'), /^Due 1 price in 7 days Price AWAITED AWAITED \S+ 00:30 UTC$/);
      t.match(
        await card('Published today'),
        `Published today 1 price Price FRESH FRESH 12345.67 USD/t of ${daysAgo(1)}`,
      );
      t.match(
        await card('Corrected or withdrawn'),
        /LATE-FREQUENCY \S+: 12345\.67 → 12300 .*Since Friday/,
      );
      t.match(
        await page.locator('.today').innerText(),
        /\d+ sample prices, which nobody publishes/,
      );
      t.same(await brokenRules(page), []);
      t.same(faults, []);
      await keepPicture(page, `today-${width}`);
      await page.getByRole('link', { name: 'Price LATE-CALENDAR' }).click();
      await page.getByRole('heading', { name: 'Publication' }).waitFor();
      await page.getByText('every-day', { exact: true }).waitFor();
      t.match(words(await page.locator('main').innerText()), /Calendar every-day Late since/);
    },
  );
}

t.test('the overview has the late prices of `prices late`', async (t) => {
  const { stdout } = await command(t, { DATABASE_URL }, 'late', '--json');
  const expected = JSON.parse(stdout).late.map(({ code }: { code: string }) => code);
  const { page, show } = await explorer.open(t);
  await show('');
  const shown = await cardOf(page, 'Late').locator('li .small').allInnerTexts();
  t.same(shown.sort(), expected.sort());
  t.equal(expected.length, 2);
});

t.test('the clock of the browser decides, without a new answer', async (t) => {
  const { page, show } = await explorer.open(t);
  await page.clock.setFixedTime(new Date(`${daysAgo(20)}T12:00:00Z`));
  await show('');
  const late = cardOf(page, 'Late');
  t.match(words(await late.innerText()), /^Late 1 price .*LATE-FREQUENCY/);
});

t.test(
  'corrections since a day are a view of their own, with a link that another opens',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show('');
    await page.getByRole('link', { name: 'Since Friday' }).click();
    await settled(page);
    t.match(page.url(), /#corrections=since&from=|#from=.*corrections=since/);
    const rows = page.locator('.corrections tbody tr', { hasText: 'LATE-FREQUENCY' });
    t.equal(await rows.count(), 1);
    const { hash } = new URL(page.url());
    await show(hash.slice(1));
    t.equal(await rows.count(), 1);
    await page.getByLabel('Since').fill(daysAgo(0));
    await page.waitForURL(new RegExp(`from=${daysAgo(0)}`));
    await settled(page);
    t.equal(await rows.count(), 1);
  },
);
