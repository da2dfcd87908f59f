import type { Page } from 'playwright-core';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { explorerOn, settled } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
const DAY_MS = 86_400_000;

/** Each working day of a year, less those from July to December. */
const days = Array.from({ length: 365 }, (_, day) => new Date(Date.UTC(2025, 0, 1) + day * DAY_MS))
  .filter((date) => date.getUTCDay() % 6 !== 0)
  .map((date) => date.toISOString().slice(0, 10));

await commit(database.pool, async (client) => {
  await addPrice(client, { code: 'HOLE', currency: 'USD', unit: 'tonne' });
  await client.query(`update price set frequency_id = (select id from dimension_value
    where kind = 'frequency' and slug = 'daily') where code = 'HOLE'`);
  const kept = days.filter((date) => date < '2025-03-01' || date >= '2025-09-01');
  await putPoints(client, 'HOLE', ...kept.map((date) => [date, '90', '100.5', '110'] as const));
});
await commit(database.pool, (client) =>
  putPoints(client, 'HOLE', ['2025-10-01', '91', '101.25', '111']),
);

/** Ten prices of ten years, less weekends. */
const LONG = Array.from({ length: 10 }, (_, at) => `LONG-${at}`);
const LONG_POINTS = 2_600;

await commit(database.pool, async (client) => {
  for (const code of LONG) await addPrice(client, { code, currency: 'USD', unit: 'tonne' });
  await client.query(
    `insert into series (price_id, date, low, mid, high, published_at)
      select price.id, date '2026-06-30' - n, 99.5 + n, 100 + n, 100.5 + n, now()
      from price, generate_series(0, $2::int - 1) as n where code = any($1)`,
    [LONG, LONG_POINTS],
  );
});

const explorer = await explorerOn(t, database);

/** The data and axes of the chart of a page. */
interface Drawn {
  readonly days: number[];
  readonly data: (number | null | undefined)[][];
  readonly axes: string[];
}

const NOTHING: Drawn = { days: [], data: [], axes: [] };

const DRAWN = `document.querySelector('.chart').chart.plots.map((plot) => ({
  days: plot.data[0],
  data: plot.data.map((values) => values.map((value) => value === undefined ? 'none' : value)),
  axes: plot.axes.slice(1).map(({ scale }) => scale),
}))`;

const drawn = async (page: Page): Promise<Drawn[]> => (await page.evaluate(DRAWN)) as Drawn[];

/**
 * The share of columns of the plot, between two days, in which any pixel is coloured as a line or
 * a band is: the rest of the plot is grey.
 */
const COLOURED = (from: string, to: string): string => `(() => {
  const [plot] = document.querySelector('.chart').chart.plots;
  const { ctx, bbox } = plot;
  const left = Math.ceil(plot.valToPos(Date.parse('${from}') / 1000, 'x', true)) + 2;
  const right = Math.floor(plot.valToPos(Date.parse('${to}') / 1000, 'x', true)) - 2;
  let coloured = 0;
  for (let x = left; x < right; x += 1) {
    const { data } = ctx.getImageData(x, bbox.top, 1, bbox.height);
    for (let at = 0; at < data.length; at += 4) {
      const colour = data.slice(at, at + 3);
      const spread = Math.max(...colour) - Math.min(...colour);
      if (data[at + 3] > 20 && spread > 40) { coloured += 1; break; }
    }
  }
  return coloured / (right - left);
})()`;

t.test('a hole of six months is nulls in the data and a gap in the picture', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/HOLE');
  const [chart] = await drawn(page);
  const { days: seconds, data } = chart ?? NOTHING;
  const inHole = (second: number): boolean =>
    second >= Date.UTC(2025, 2, 1) / 1_000 && second < Date.UTC(2025, 8, 1) / 1_000;
  const held = seconds.flatMap((second, at) => (inHole(second) ? [data[1]?.[at]] : []));
  t.equal(held.length, days.filter((date) => date >= '2025-03-01' && date < '2025-09-01').length);
  t.ok(held.every((value) => value === null));
  for (const band of [2, 3]) t.equal(data[band]?.[seconds.findIndex(inHole)], null);
  t.equal(await page.evaluate(COLOURED('2025-03-03', '2025-08-29')), 0, 'nothing is drawn there');
  t.ok(Number(await page.evaluate(COLOURED('2025-09-03', '2025-12-20'))) > 0.9);
});

t.test('the line of a price is broken by the band and line alike, and never bridged', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/HOLE&price=nickel/CP-NI-0003&from=2025-01-01');
  const [chart] = await drawn(page);
  const { days: seconds, data } = chart ?? NOTHING;
  const at = seconds.indexOf(Date.UTC(2025, 5, 5) / 1_000);
  t.equal(data[1]?.[at], null, 'a gap where another price has a point');
  t.type(data[4]?.[at], 'number');
});

t.test('the days of other prices bridge no gap of a weekly one', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0003&price=nickel/CP-NI-0011&from=2025-12-01&to=2026-01-31');
  const [chart] = await drawn(page);
  const { days: seconds, data } = chart ?? NOTHING;
  const dayIn = (second: number): string => new Date(second * 1_000).toISOString().slice(0, 10);
  // No Thursday of Christmas and New Year has a value.
  const held = seconds.flatMap((second, at) =>
    dayIn(second) > '2025-12-18' && dayIn(second) < '2026-01-08' ? [data[1]?.[at]] : [],
  );
  t.ok(held.length > 8);
  t.ok(held.every((value) => value === null));
});

t.test('a payable beside money has an axis of its own', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0011');
  t.same(
    (await drawn(page)).map(({ axes }) => axes),
    [['USD/t', '%']],
  );
});

t.test('every further unit has a panel of its own', async (t) => {
  const { page, show } = await explorer.open(t);
  const codes = ['0001', '0011', '0002', '0004', '0012'];
  await show(codes.map((code) => `price=nickel/CP-NI-${code}`).join('&'));
  t.same(
    (await drawn(page)).map(({ axes }) => axes),
    [['USD/t', '%'], ['CNY/t'], ['USD/lb']],
  );
});

t.test('an index begins at 100 with the first visible point of each price', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const from of ['2024-02-01', '2025-02-03']) {
    await show(`price=nickel/CP-NI-0001&price=nickel/CP-NI-0011&index=1&from=${from}`);
    const [chart] = await drawn(page);
    t.same(chart?.axes, ['Index']);
    for (const line of [1, 4]) {
      t.equal(
        chart?.data[line]?.find((value) => typeof value === 'number'),
        100,
      );
    }
  }
});

t.test('a log scale leaves out what is not above zero, and says so', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0018&log=1');
  await page.getByText('values that are not above zero').waitFor();
  const [chart] = await drawn(page);
  t.notOk(chart?.data[1]?.some((value) => typeof value === 'number' && value <= 0));
});

t.test('a corrected point is marked and shows what it replaced', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/HOLE&from=2025-10-01&to=2025-10-03');
  await page.locator('.chart').focus();
  await page.keyboard.press('Home');
  await page.getByText(/corrected: replaced 100\.5 on/).waitFor();
  t.ok(await page.locator('.points tr.corrected').count());
});

t.test('dragging zooms, a double click shows everything, presets end at the newest', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001');
  const box = await page.locator('.chart .u-over').boundingBox();
  if (box === null) throw new Error('there is no chart');
  await page.mouse.move(box.x + 200, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 40, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/from=\d{4}-\d\d-\d\d&to=/);
  await settled(page);
  const [zoomed] = await drawn(page);
  const view = new URLSearchParams(new URL(page.url()).hash.slice(1));
  const date = (second = 0): string => new Date(second * 1_000).toISOString().slice(0, 10);
  t.ok(date(zoomed?.days[0]) >= String(view.get('from')));
  t.ok(date(zoomed?.days.at(-1)) <= String(view.get('to')));
  await page.locator('.chart .u-over').dblclick();
  await page.waitForURL(/#price=nickel%2FCP-NI-0001$/);
  await page.getByRole('button', { name: '1M' }).click();
  await page.waitForURL(/from=2026-05-30$/);
});

t.test('ten prices of 2,600 points are drawn with each point', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(LONG.map((code) => `price=nickel/${code}`).join('&'));
  const [chart, ...more] = await drawn(page);
  const { days: seconds, data } = chart ?? NOTHING;
  t.equal(more.length, 0, 'one panel');
  t.equal(seconds.length, LONG_POINTS);
  const whole = data
    .slice(1)
    .filter((values) => values.every((value) => typeof value === 'number'));
  t.ok(whole.length >= LONG.length, `${whole.length} series`);
  t.ok(Number(await page.evaluate(COLOURED('2020-01-01', '2026-06-01'))) > 0.9);
});
