import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import t from 'tap';
import { BY_RULE, roundedText } from '../../../src/conversion/rounding.ts';
import { decimalText } from '../../../src/std/decimal.ts';
import { testDatabase } from '../../support/database/database.ts';
import { addPrice, commit, type NewPoint, putPoints } from '../../support/prices/sample-writes.ts';
import { explorerOn, RECORD_WRITTEN } from '../../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });

/** Points by day of March 2026, or of another month. */
const points = (mids: Readonly<Record<string, string>>, month = '2026-03'): NewPoint[] =>
  Object.entries(mids).map(([day, mid]) => [`${month}-${day.padStart(2, '0')}`, null, mid, null]);

const PRICES = [
  // Monday the 2nd to Tuesday the 10th; each lacks one day of the first week.
  ['DAILY-A', 'daily', points({ 2: '10.5', 4: '10.25', 5: '3', 6: '0.1', 9: '1', 10: '2.75' })],
  ['DAILY-B', 'daily', points({ 2: '0.7', 3: '5', 4: '3', 6: '0.0003', 9: '7', 10: '2.75' })],
  ['WEEKLY', 'weekly', points({ 2: '1', 9: '2', 16: '3' })],
  ['EVERY-DAY', 'daily', points({ 2: '4', 3: '4', 4: '4', 5: '4', 6: '4', 9: '4', 10: '4' })],
  [
    'PREMIUM',
    'weekly',
    [
      ...points({ 2: '-1', 9: '40.25', 16: '30' }, '2025-03'),
      ...points({ 2: '60', 9: '60', 16: '60' }),
    ],
  ],
] as const;

await commit(database.pool, async (client) => {
  for (const [code, frequency, its] of PRICES) {
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: 'copper' });
    await client.query(
      `update price set frequency_id = (select id from dimension_value
        where kind = 'frequency' and slug = $2) where code = $1`,
      [code, frequency],
    );
    await putPoints(client, code, ...its);
  }
});

const explorer = await explorerOn(t, database);

const MARCH = 'from=2026-03-01&to=2026-03-31';
const viewOf = (...codes: string[]): string =>
  `${codes.map((code) => `price=copper/${code}`).join('&')}&${MARCH}`;

interface SummaryRecord {
  readonly currency: object | null;
  readonly summary: {
    readonly changes: { readonly year: { readonly absolute: number; readonly percent: number } };
  };
}

/** The values of the first line of the last panel by the day of the month: `gap`, or `none`. */
const drawn = (page: Page): Promise<unknown> =>
  page.evaluate(`(() => {
    const { data } = document.querySelector('.chart').chart.plots.at(-1);
    return data[0].map((second, at) => [new Date(second * 1000).getUTCDate(),
      data[1][at] === null ? 'gap' : data[1][at]?.toFixed(4) ?? 'none']);
  })()`);

async function saved(page: Page, button: string): Promise<{ name: string; text: string }> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button, exact: true }).click(),
  ]);
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), 'utf8') };
}

t.test('a spread and a ratio have a gap on each day that either price lacks', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const [compare, values] of [
    ['spread', ['9.8000', 'gap', '7.2500', 'gap', '0.0997', '-6.0000', '0.0000']],
    ['ratio', ['15.0000', 'gap', '3.4167', 'gap', '333.3333', '0.1429', '1.0000']],
  ] as const) {
    await show(`${viewOf('DAILY-A', 'DAILY-B')}&compare=${compare}`);
    const days = [2, 3, 4, 5, 6, 9, 10];
    t.same(
      await drawn(page),
      days.map((day, at) => [day, values[at]]),
      compare,
    );
  }
});

t.test('a comparison with a rarer price crosses the days between its assessments', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(`${viewOf('EVERY-DAY', 'WEEKLY')}&compare=spread`);
  const values = (await drawn(page)) as [number, string][];
  t.same(values.slice(0, 7), [
    [2, '3.0000'],
    ...[3, 4, 5, 6].map((day) => [day, 'none']),
    [9, '2.0000'],
    [10, 'none'],
  ]);
});

t.test(
  'a point without a value is a gap up to its neighbours, on a chart of several',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show(`${viewOf('PREMIUM', 'DAILY-B')}&compare=year`);
    const values = (await drawn(page)) as [number, string][];
    // A change from a value below zero has no meaning.
    t.same(values, [
      ...[2, 3, 4, 5, 6].map((day) => [day, 'gap']),
      [9, '49.0683'],
      [10, 'none'],
      [16, '100.0000'],
    ]);
  },
);

t.test('a file has the exact values of a comparison, with name and unit', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(`${viewOf('DAILY-A', 'DAILY-B')}&compare=spread`);
  t.equal(await page.getByRole('button', { name: 'Excel', exact: true }).count(), 0);
  const heads = 'date,DAILY-A [USD/Tonne],DAILY-B [USD/Tonne],';
  const spread = await saved(page, 'CSV');
  t.equal(spread.name, 'DAILY-A_DAILY-B-spread.csv');
  t.equal(
    spread.text,
    `${[
      `${heads}Spread: DAILY-A minus DAILY-B [USD/Tonne]`,
      '2026-03-02,10.5,0.7,9.8',
      '2026-03-03,,5,',
      '2026-03-04,10.25,3,7.25',
      '2026-03-05,3,,',
      '2026-03-06,0.1,0.0003,0.0997',
      '2026-03-09,1,7,-6',
      '2026-03-10,2.75,2.75,0.00',
    ].join('\r\n')}\r\n`,
  );
  const semicolons = await saved(page, 'CSV with semicolons');
  t.match(semicolons.text, /^\ufeffdate;.*\r\n2026-03-02;10,5;0,7;9,8\r\n/);
  await show(`${viewOf('DAILY-A', 'DAILY-B')}&compare=ratio`);
  const ratio = (await saved(page, 'CSV')).text.split('\r\n').map((row) => row.split(',').at(-1));
  t.same(ratio.slice(0, -1), [
    'Ratio: DAILY-A divided by DAILY-B [ratio]',
    '15',
    '',
    '3.41667',
    '',
    '333.333',
    '0.142857',
    '1',
  ]);
  await page.getByLabel('Columns').selectOption('wide');
  t.match(
    (await saved(page, 'CSV')).text,
    /^date,DAILY-A \[USD\/Tonne\],DAILY-B \[USD\/Tonne\]\r\n/,
  );
  t.equal(await page.getByRole('button', { name: 'Excel', exact: true }).count(), 1);
});

t.test('the change from a year ago in a file is that of the summary of the service', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const [code, market, heading] of [
    ['PREMIUM', 'copper', 'PREMIUM change from a year ago [%]'],
    ['CP-NI-0001', 'nickel', 'CP-NI-0001 change from a year ago [%]'],
    ['CP-NI-0011', 'nickel', 'CP-NI-0011 change from a year ago [percentage points]'],
  ] as const) {
    await show(`price=${market}/${code}&from=2026-03-01&compare=year`);
    const { text } = await saved(page, 'CSV');
    const [heads = '', ...rows] = text.trimEnd().split('\r\n');
    t.equal(heads.split(',').at(-1), heading);
    const answer = await fetch(
      `${explorer.address}/v3/prices/${market}?codes=${code}&includeSummary=true`,
      { headers: { 'x-api-key': explorer.key } },
    );
    const [record] = ((await answer.json()) as { data: SummaryRecord[] }).data;
    const { absolute, percent } = record?.summary.changes.year ?? {};
    const change = rows.at(-1)?.split(',').at(-1) ?? '';
    t.equal(Number(change), record?.currency === null ? absolute : percent, code);
  }
});

t.test('a ratio and a change in percent are rounded as the service rounds', async (t) => {
  const { ratio, percentChange } = await import(
    new URL('../../../src/explorer/decimals.js', import.meta.url).href
  );
  let seed = 7;
  const random = (most: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % most;
  };
  const faults: string[] = [];
  for (let time = 0; time < 3_000; time += 1) {
    const scale = random(4);
    const base = BigInt(random(10 ** (1 + random(9))) + 1);
    const value = BigInt(random(10 ** (1 + random(9)))) * (random(2) === 0 ? 1n : -1n);
    const [first, second] = [value, base].map((digits) => decimalText({ digits, scale }));
    const quotient = { numerator: value, denominator: base };
    const change = { numerator: 100n * (value - base), denominator: base };
    if (
      ratio(first, second) !== roundedText(quotient, BY_RULE) ||
      percentChange(second, first) !== roundedText(change, BY_RULE)
    ) {
      faults.push(`${first} and ${second}`);
    }
  }
  t.same(faults, []);
  t.equal(percentChange('0', '1'), null);
  t.equal(percentChange('-1', '1'), null);
});

t.test('a picture names the prices of its comparison', async (t) => {
  const { page, show } = await explorer.open(t);
  await page.addInitScript(RECORD_WRITTEN);
  await show(`${viewOf('DAILY-A', 'DAILY-B')}&compare=spread`);
  await saved(page, 'PNG of the chart');
  const texts = (await page.evaluate('written')) as string[];
  t.ok(texts.includes('Spread: DAILY-A − DAILY-B'), 'the note');
});

t.test('a chart of two markets says how to take both away at once', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&from=2026-06-01');
  const hint = page.getByText('Excel gets a workbook for each market');
  t.equal(await hint.count(), 0);
  await show('price=nickel/CP-NI-0001&price=copper/CP-CU-0001&from=2026-06-01');
  await hint.waitFor();
});
