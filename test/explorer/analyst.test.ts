import type { Page } from 'playwright-core';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { explorerOn, RECORD_WRITTEN, settled, words } from '../support/process/explorer.ts';
import { unfold, walk } from '../support/process/explorer-walk.ts';

const database = await testDatabase(t, { seeded: true });

/** A day some days ago, in UTC. */
const daysAgo = (days: number): string =>
  new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

await commit(database.pool, async (client) => {
  for (const [code, frequency, days] of [
    ['FRESH', 'daily', 1],
    ['STALE', 'daily', 30],
    ['MONTHLY', 'monthly', 30],
  ] as const) {
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: 'copper' });
    await client.query(
      `update price set frequency_id = (select id from dimension_value
      where kind = 'frequency' and slug = $2) where code = $1`,
      [code, frequency],
    );
    await putPoints(client, code, [daysAgo(days), null, '12345.67', null]);
  }
  for (const [code, mids] of [
    ['YEAR-A', ['100', '110', '150']],
    ['YEAR-B', ['40.25', '55.5', '60']],
  ] as const) {
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: 'copper' });
    const dates = ['2025-03-03', '2025-09-01', '2026-03-03'];
    await putPoints(
      client,
      code,
      ...dates.map((date, at) => [date, null, `${mids[at]}`, null] as const),
    );
  }
});

const explorer = await explorerOn(t, database);

/** The first load of the service. */
const FIRST = String(
  (await database.pool.query('select min(committed_at)::text as first from revision')).rows[0]
    .first,
);

t.test(
  'as of a time before the first load every view says so, and leads to the first state',
  async (t) => {
    const { page, show } = await explorer.open(t);
    t.ok(FIRST > '2020-01-02');
    for (const view of ['price=nickel/CP-NI-0001', 'code=CP-NI-0001&market=nickel']) {
      await show(`${view}&asOf=2020-01-01`);
      await page
        .getByText('The service had none of these prices at 2020-01-01 23:59 UTC')
        .waitFor();
      t.equal(await page.getByText('No such price').count(), 0);
      await page.getByRole('button', { name: 'Show that state' }).click();
      await page.locator('.chart .u-over').first().waitFor();
      await settled(page);
      t.match(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('asOf'), /^20\d\d-.*Z$/);
    }
    await show('market=nickel&asOf=2020-01-01');
    await page.getByText('The service had no price of this market at 2020-01-01').waitFor();
    await show('asOf=2020-01-01');
    t.ok(await page.getByText('nothing was loaded at that time').count());
  },
);

t.test('a range without values says where the values are, and leads there', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const view of ['price=nickel/CP-NI-0001', 'code=CP-NI-0001&market=nickel']) {
    await show(`${view}&from=1999-01-01&to=1999-02-01`);
    const empty = page.locator('.empty');
    t.match(words(await empty.innerText()), 'No value from 1999-01-01 to 1999-02-01');
    t.match(words(await empty.innerText()), 'CP-NI-0001: the newest value is of 2026-06-30');
    t.equal(await page.locator('.chart').count(), 0, 'no empty axes');
    await page.getByRole('button', { name: 'Show all values' }).click();
    await page.locator('.chart .u-over').first().waitFor();
  }
  await show('price=nickel/CP-NI-0001&price=copper/YEAR-A&from=2026-06-01');
  await page.getByText('YEAR-A has no value in this range; its newest is of 2026-03-03').waitFor();
});

t.test('Copy link works on plain http, where browsers hide the clipboard', async (t) => {
  const { page, show } = await explorer.open(t);
  await page.addInitScript(`Object.defineProperty(navigator, 'clipboard', { value: undefined });
    addEventListener('copy', () => { globalThis.copied = document.activeElement.value; });`);
  await show('price=nickel/CP-NI-0001');
  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByText('Copied').waitFor();
  t.equal(await page.evaluate('globalThis.copied'), page.url());
});

t.test(
  'ticked prices are ticked on the way back from their chart, until they are cleared',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show('market=nickel');
    for (const code of ['CP-NI-0001', 'CP-NI-0003'])
      await page.getByLabel(`Choose ${code}`).check();
    await page.getByRole('link', { name: 'Show chart' }).click();
    await page.locator('.chart .u-over').first().waitFor();
    await page.goBack();
    await page.getByText('2 prices chosen').waitFor();
    t.ok(await page.getByLabel('Choose CP-NI-0003').isChecked());
    await page.locator('.choice').getByRole('button', { name: 'Clear' }).click();
    t.notOk(await page.getByLabel('Choose CP-NI-0003').isChecked());
    await page.getByLabel('Choose CP-NI-0001').check();
    await page.getByRole('button', { name: 'Forget key' }).click();
    await page.getByLabel('API key').fill(explorer.key);
    await page.getByRole('button', { name: 'Show prices' }).click();
    await page.getByLabel('Choose CP-NI-0001').waitFor();
    t.notOk(await page.getByLabel('Choose CP-NI-0001').isChecked(), 'forgotten with the key');
  },
);

t.test('each of two axes names its prices', async (t) => {
  const { page, show } = await explorer.open(t);
  await page.addInitScript(RECORD_WRITTEN);
  await show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0003&price=nickel/CP-NI-0011');
  const texts = (await page.evaluate('written')) as string[];
  t.ok(texts.includes('USD/t: CP-NI-0001, CP-NI-0003'));
  t.ok(texts.includes('%: CP-NI-0011'));
});

t.test(
  'a gap separates thousands in tables, and a copied number has the digits sent',
  async (t) => {
    const { page, show } = await explorer.open(t);
    for (const [view, selector] of [
      ['market=copper', '.list .strong'],
      ['price=copper/FRESH', '.points td.number'],
      ['price=copper/FRESH', '.readout .strong'],
    ] as const) {
      await show(view);
      const cell = page.locator(selector, { hasText: '12345.67' }).first();
      t.equal(words(await cell.innerText()), '12345.67', view);
      const group = cell.locator('.group');
      t.same(await group.allInnerTexts(), ['345.67']);
      t.ok(
        Number.parseFloat(
          (await page.evaluate(
            `getComputedStyle(document.querySelector('.group')).marginLeft`,
          )) as string,
        ) > 1,
      );
    }
  },
);

t.test('the ranges have two years', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001');
  await page.getByRole('button', { name: '2Y' }).click();
  await page.waitForURL(/from=2024-06-30$/);
});

/** The count beside each value of a filter. */
const countsOf = async (page: Page, filter: string): Promise<Record<string, number>> => {
  const rows = await page.evaluate(`[...document.querySelectorAll('.filters details')]
    .find((each) => each.querySelector('summary').textContent.includes('${filter}'))
    .querySelectorAll('li').values().map((each) =>
      [each.querySelector('bdi').textContent, Number(each.querySelector('.count').textContent)])
    .toArray()`);
  return Object.fromEntries(rows as [string, number][]);
};

t.test(
  'the count of a filter value is that of the prices that the other filters leave',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show('market=nickel');
    await page.getByLabel('Europe').waitFor({ state: 'attached' });
    const before = await countsOf(page, 'Price categories');
    await page.getByLabel('Europe').check();
    await settled(page);
    const shown = await page.locator('.list tbody .kind').allInnerTexts();
    t.ok(shown.length > 0);
    const after = await countsOf(page, 'Price categories');
    for (const [category, count] of Object.entries(after)) {
      t.equal(count, shown.filter((each) => each === category).length, category);
      t.ok(count <= Number(before[category]));
    }
    t.ok(Object.values(after).some((count) => count === 0));
    const regions = await countsOf(page, 'Regions');
    t.ok(Number(regions['North America']) > 0, 'other values of the same filter can be added');
  },
);

t.test('the currencies of the shown markets are on top of the list', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001');
  const group = page.getByLabel('Currency').locator('optgroup').first();
  t.equal(await group.getAttribute('label'), 'In use here');
  const used = await page.evaluate(
    `[...document.querySelector('optgroup').children].map(({ value }) => value)`,
  );
  const { rows } = await database.pool.query(`select distinct currency.iso from price
    join currency on currency.id = price.currency_id
    join market on market.id = price.market_id where market.slug = 'nickel'`);
  t.same([...(used as string[])].sort(), rows.map(({ iso }) => iso).sort());
});

t.test('rises are green, red or without a colour, as the reader chose', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const colours = async (): Promise<unknown> =>
    page.evaluate(`['.change.up', '.change.down'].map((kind) =>
      getComputedStyle(document.querySelector(kind)).color)`);
  const [green, red] = (await colours()) as string[];
  t.not(green, red);
  await page.getByLabel('Changes').selectOption('red');
  t.same(await colours(), [red, green]);
  await show('');
  t.same(await colours(), [red, green], 'this browser keeps the choice');
  await page.getByLabel('Changes').selectOption('none');
  const [rise, fall] = (await colours()) as string[];
  t.equal(rise, fall);
});

t.test(
  'a key is remembered on the device only after a warning, until it is forgotten',
  async (t) => {
    const { page } = await explorer.open(t);
    await page.goto(`${explorer.address}/explorer`);
    await page.getByLabel('API key').fill(explorer.key);
    t.equal(await page.getByText('Anyone who uses this browser').count(), 0);
    await page.getByLabel('Remember on this device').check();
    await page.getByText('Anyone who uses this browser').waitFor();
    await page.getByRole('button', { name: 'Show prices' }).click();
    const nickel = page.getByRole('link', { name: 'Nickel', exact: true });
    await nickel.waitFor();
    t.equal(await page.evaluate('sessionStorage.length'), 0);
    const other = await page.context().newPage();
    await other.goto(`${explorer.address}/explorer`);
    await other.getByRole('link', { name: 'Nickel', exact: true }).waitFor();
    await other.getByRole('button', { name: 'Forget key' }).click();
    await other.getByLabel('API key').waitFor();
    t.equal(await other.evaluate('localStorage.length'), 0);
  },
);

t.test(
  'on a phone the chart comes first, with controls and remarks folded behind it',
  async (t) => {
    const { page, show } = await explorer.open(t, { viewport: { width: 390, height: 844 } });
    await show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0003&currency=EUR');
    const box = await page.locator('.chart').boundingBox();
    t.ok(
      box !== null && box.y + box.height <= 844,
      `the chart ends at ${box && box.y + box.height}`,
    );
    t.notOk(await page.getByLabel('Currency').isVisible());
    for (const behind of ['.fold', '.remarks', '.readout']) {
      const other = await page.locator(behind).boundingBox();
      t.ok(Number(other?.y) >= Number(box?.y) + Number(box?.height) - 1, behind);
    }
    t.match(words(await page.locator('.fold summary').innerText()), 'EUR');
    await unfold(page);
    await page.getByLabel('Currency').selectOption('');
    await settled(page);
    t.ok(await page.getByLabel('Currency').isVisible(), 'the controls stay open');
  },
);

t.test('on a phone the filters of a market are one line until they are opened', async (t) => {
  const { page, show } = await explorer.open(t, { viewport: { width: 390, height: 844 } });
  await show('market=nickel&regions=Europe');
  const filters = page.locator('.filters');
  const box = await filters.boundingBox();
  t.ok(Number(box?.height) <= 64, `${box?.height} px`);
  t.equal(words(await filters.innerText()), 'Filters: Europe');
  const first = await page.locator('.list tbody tr').first().boundingBox();
  t.ok(Number(first?.y) + Number(first?.height) <= 844, 'a price is on the screen');
  await unfold(page);
  await page.locator('summary', { hasText: 'Regions' }).waitFor();
  t.ok(await page.getByLabel('Europe').isVisible(), 'a filter in use is open');
  await filters.getByRole('button', { name: 'Clear' }).click();
  await page.waitForURL(/#market=nickel$/);
});

t.test('on a phone no line break divides a day or an instant', async (t) => {
  const { page, show } = await explorer.open(t, { viewport: { width: 390, height: 844 } });
  const divided = `[...document.querySelectorAll('.day')].map((each) =>
    [each.textContent, each.getClientRects().length])`;
  for (const view of [
    'price=nickel/CP-NI-0001&price=nickel/CP-NI-0003&currency=EUR&average=month',
    'code=CP-NI-0003&market=nickel',
    'price=nickel/CP-NI-0001&from=1999-01-01&to=1999-02-01',
  ]) {
    await show(view);
    await page.locator('.day').nth(1).waitFor();
    const days = (await page.evaluate(divided)) as [string, number][];
    t.ok(days.length > 1, view);
    t.same([...new Set(days.map(([, lines]) => lines))], [1], view);
  }
  await show('price=nickel/CP-NI-0001&currency=EUR');
  const texts = await page.locator('.points tbody tr').first().locator('.day').allInnerTexts();
  t.equal(texts.length, 2);
  t.match(texts[0], /^2026-06-\d\d$/);
  t.match(texts[1], /^2026-06-30T\d\d:\d\d:\d\dZ$/);
});

t.test('no column of a table is cut on a phone', async (t) => {
  const visit = await explorer.open(t, { viewport: { width: 390, height: 844 } });
  const cut = async (name: string, page: Page): Promise<void> => {
    const tables = (await page.evaluate(`[...document.querySelectorAll('.scroll')]
      .map((each) => [each.getAttribute('aria-label'), each.scrollWidth - each.clientWidth])`)) as [
      string,
      number,
    ][];
    for (const [label, over] of tables) t.ok(over <= 0, `${name}: ${label} is ${over} px too wide`);
  };
  await walk(explorer, visit, cut);
  await visit.show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0002&currency=EUR&average=month');
  await cut('averages', visit.page);
});

t.test('every list names the category beside the name', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('market=nickel');
  t.equal(
    await page.locator('.list tbody .kind').count(),
    await page.locator('.list tbody tr').count(),
  );
  const premium = page.locator('.list tbody tr', { hasText: 'CP-NI-0003' });
  t.equal(await premium.locator('.kind').innerText(), 'Premium');
  await show('');
  t.equal(
    await page.locator('.overview tbody .kind').count(),
    await page.locator('.overview tbody tr:has(.spark)').count(),
  );
  await show('price=nickel/CP-NI-0003');
  t.equal(await page.locator('.readout .kind').innerText(), 'Premium');
  await page.getByRole('searchbox').fill('CP-NI-0003');
  t.equal(await page.locator('.results li .kind').first().innerText(), 'Premium');
});

t.test('the age of a value is marked where it is old for its frequency', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('market=copper');
  const row = (code: string) => page.locator('.list tbody tr', { hasText: `Price ${code}` });
  t.equal(await row('STALE').locator('.old').innerText(), '30 days old');
  t.equal(await row('FRESH').locator('.old').count(), 0);
  t.equal(await row('MONTHLY').locator('.old').count(), 0, 'a month is usual for a monthly price');
  await show('price=copper/STALE&price=copper/FRESH');
  t.same(await page.locator('.readout .old').allInnerTexts(), ['30 days old']);
});

t.test('a sparkline ends where its data end', async (t) => {
  const { page, show } = await explorer.open(t);
  // Copper has a value of yesterday, the others end on 2026-06-30.
  await show('');
  const ends = (await page.evaluate(`[...document.querySelectorAll('.overview tbody tr')]
    .map((row) => [row.cells[0].textContent, row.querySelector('.spark path')?.getBBox()])
    .map(([name, box]) => [name, box ? box.x + box.width : null])`)) as [string, number | null][];
  const nickel = ends.find(([name]) => name === 'Nickel')?.[1];
  const months = (Date.parse(daysAgo(1)) - Date.parse('2026-06-30')) / 86_400_000;
  const expected = 2 + Math.max(0, 1 - months / 365) * 128;
  t.ok(Math.abs(Number(nickel) - expected) < 3, `${nickel} of ${expected}`);
});

t.test('a record has changes, and high, low and mean of its range', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('code=YEAR-B&market=copper');
  const figures = words(await page.locator('.figures').innerText());
  t.match(figures, 'Newest mid 60 USD/t, 2026-03-03');
  t.match(figures, /Year \+49\.1 % ?since 2025-03-03/);
  t.match(figures, 'High of the range 60 USD/t, 2026-03-03');
  t.match(figures, 'Low of the range 40.25 USD/t, 2025-03-03');
  // (40.25 + 55.5 + 60) / 3
  t.match(figures, 'Mean of the range 51.9167 USD/t, of 3 mids');
});

t.test('a chart has the spread, the ratio and the change from a year ago', async (t) => {
  const { page, show } = await explorer.open(t);
  const PAIR = 'price=copper/YEAR-A&price=copper/YEAR-B';
  const drawn = `document.querySelector('.chart').chart.plots.map((plot) => [
    plot.axes.slice(1).map(({ scale }) => scale), plot.data[1].filter((each) => each != null)])`;
  await show(`${PAIR}&compare=spread`);
  t.same(await page.evaluate(drawn), [
    [['USD/t'], [100, 110, 150]],
    [['Spread, USD/t'], [59.75, 54.5, 90]],
  ]);
  const last = page.locator('.readout tbody tr').last();
  t.equal(await last.locator('.strong').innerText(), '90');
  await page.locator('.chart').focus();
  await page.keyboard.press('Home');
  t.equal(await last.locator('.strong').innerText(), '59.75', 'exact at the cursor');
  await page.getByLabel('Compare').selectOption('ratio');
  await settled(page);
  t.equal(await last.locator('.strong').innerText(), '2.5');
  await show(`${PAIR}&compare=year&from=2026-01-01`);
  const [[units, values]] = (await page.evaluate(drawn)) as [[string[], number[]]];
  t.same(units, ['% from a year ago']);
  const first = page.locator('.readout tbody tr').first();
  t.equal(await first.locator('.mark').innerText(), '+50.0 % from a year ago');
  t.equal(words(await first.locator('.unit').innerText()), 'USD/t');
  t.same(values.map(Math.round), [50], 'the base lies before the range');
  for (const compare of ['spread', 'ratio']) {
    for (const other of ['nickel/CP-NI-0002', 'nickel/CP-NI-0011']) {
      await show(`price=copper/YEAR-A&price=${other}&compare=${compare}`);
      await page.getByText(`A ${compare} needs two prices in one currency and unit`).waitFor();
      t.equal(await page.locator('.readout tbody tr').count(), 2, `no ${compare} to ${other}`);
    }
  }
});

t.test('the help is on every page, and its pages are those documents', async (t) => {
  const { page } = await explorer.open(t);
  for (const path of ['explorer', 'docs', 'docs/problems']) {
    await page.goto(`${explorer.address}/${path}`);
    await page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link', { name: 'Help' })
      .click();
    await page.getByRole('heading', { name: 'The explorer', level: 1 }).waitFor();
  }
  const menu = page.getByRole('navigation', { name: 'Help' });
  for (const [name, heading] of [
    ['Formats', 'Formats'],
    ['Conversion', 'Conversion, summaries, aggregates, the past'],
    ['The explorer', 'The explorer'],
  ] as const) {
    await menu.getByRole('link', { name }).click();
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    const boxes = await Promise.all(
      (await menu.getByRole('link').all()).map((link) => link.boundingBox()),
    );
    for (const [at, box] of boxes.slice(1).entries()) {
      const before = boxes[at];
      t.ok(Number(box?.x) > Number(before?.x) + Number(before?.width) + 5, 'links are apart');
    }
    const links = (await page.evaluate(`[...document.querySelectorAll('main a')].map((link) =>
      [link.href, link.pathname !== location.pathname || link.hash === '' ||
        document.getElementById(link.hash.slice(1)) !== null])`)) as [string, boolean][];
    const broken: string[] = [];
    for (const [href, hasPlace] of links) {
      if (!hasPlace || !(await fetch(href)).ok) broken.push(href);
    }
    t.same(broken, [], name);
  }
});
