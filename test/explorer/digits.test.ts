import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { explorerOn, settled } from '../support/process/explorer.ts';

const ROWS = 200;
/** More digits than a number of JavaScript has. */
const LONG = '12345678901234567.891';

const explorer = await explorerOn(t, await seededDatabase(t));
const modules = new URL('../../src/explorer/', import.meta.url).href;

/** The rows of a table as the texts of their cells. */
const CELLS = (selector: string): string =>
  `[...document.querySelectorAll('${selector} tbody tr')].map((row) =>
    [...row.cells].map((cell) => cell.textContent.trim()))`;

/** A point as JSON text, by the name of each member. */
function membersOf(json: string): Record<string, string> {
  const members = [...json.matchAll(/"(\w+)":("[^"]*"|[^,{}]+|\{[^}]*\})/g)];
  return Object.fromEntries(
    members.map(([, name = '', value = '']) => [name, value.replace(/^"|"$/g, '')]),
  );
}

const shown = (text: string | undefined): string =>
  text === undefined || text === 'null' ? '–' : text;

t.test('each cell of the first 200 rows has the characters of the answer', async (t) => {
  const { page } = await explorer.open(t);
  let json = '';
  await page.route(/v3\/prices\/nickel\?(?!format=rows)/, async (route) => {
    const answer = await route.fetch();
    json = (await answer.text())
      .replace(/"mid":[\d.]+/, `"mid":${LONG}`)
      .replace(/("date":"2026-06-2\d","low":)[\d.]+/g, (_all, begin) => `${begin}7285.10`);
    await route.fulfill({ response: answer, body: json });
  });
  const view = 'price=nickel/CP-NI-0001&currency=EUR&unit=lb&from=2025-06-01';
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}&${view}`);
  await settled(page);
  const rows = (await page.evaluate(CELLS('.points'))) as string[][];
  const [, series = ''] = /"series":\[(.*?)\]/.exec(json) ?? [];
  const points = [...series.matchAll(/\{"date".*?\}(?=,\{"date"|$)/g)].map(([text]) => text);
  t.ok(points.length > ROWS);
  t.equal(rows.length, ROWS);
  points.reverse();
  for (const [index, cells] of rows.entries()) {
    const point = membersOf(points[index] ?? '');
    const rate = membersOf(`{${/"fx":\{(.*)\}/.exec(points[index] ?? '')?.[1]}}`);
    const expected = [
      point['date'],
      shown(point['low']),
      shown(point['mid']),
      shown(point['high']),
      rate['date'],
      rate['from'],
      rate['to'],
      rate['base'],
      point['corrections'],
      point['publishedAt'],
    ];
    if (JSON.stringify(cells) !== JSON.stringify(expected)) t.same(cells, expected, `row ${index}`);
  }
  t.ok(
    rows.some((cells) => cells[1]?.endsWith('.10')),
    'a trailing zero stays',
  );
  await page.getByRole('button', { name: 'Show 200 more' }).click();
  const all = (await page.evaluate(CELLS('.points'))) as string[][];
  t.ok(all.length > ROWS);
  t.equal(all.at(-1)?.[2], LONG, 'the oldest point');
});

t.test('a decimal of twenty digits survives', async (t) => {
  const { page } = await explorer.open(t);
  await page.route(/v3\/prices\/nickel\?(?!format=rows)/, async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text()).replace(/"mid":[\d.]+/g, `"mid":${LONG}`);
    await route.fulfill({ response: answer, body });
  });
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}&price=nickel/CP-NI-0001`);
  await settled(page);
  const [row] = (await page.evaluate(CELLS('.points'))) as string[][];
  t.equal(row?.[2], LONG, 'the table');
  const [readOut] = (await page.evaluate(CELLS('.readout'))) as string[][];
  t.ok(readOut?.includes(LONG), 'the read-out');
});

t.test('the receipt has the characters of the answer', async (t) => {
  const { page } = await explorer.open(t);
  const view = 'price=nickel/CP-NI-0001&price=nickel/CP-NI-0011&price=nickel/CP-NI-0014';
  const answered = page.waitForResponse(/v3\/prices\/nickel\?codes/);
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}&${view}&currency=EUR&unit=lb`);
  const { data } = await (await answered).json();
  await settled(page);
  const rows = (await page.evaluate(CELLS('.receipt'))) as string[][];
  const quotationText = (is: { currency: string | null; unitOfMeasure: string } | null): string =>
    is ? [is.currency, is.unitOfMeasure].filter(Boolean).join(' per ') : '–';
  t.same(
    rows,
    // biome-ignore lint/suspicious/noExplicitAny: receipts of an answer that other tests check
    data.map((record: any) => {
      const { status, reason, from, to, unitFactor: factor, source, rounding } = record.conversion;
      return [
        record.code,
        status,
        shown(reason ?? undefined),
        quotationText(from ?? null),
        quotationText(to ?? null),
        factor ? `× ${factor.multiply} ÷ ${factor.divide}` : '–',
        shown(source ?? undefined),
        shown(rounding ?? undefined),
      ];
    }),
  );
  t.same(
    new Set(rows.map(([, status]) => status)),
    new Set(['converted', 'not-applicable', 'refused']),
  );
});

t.test('a point without a rate says so', async (t) => {
  const { page } = await explorer.open(t);
  await page.route(/v3\/prices\/nickel\?(?!format=rows)/, async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text()).replace(
      /("date":"2026-06-30"),"low":[^,]+,"mid":[^,]+,"high":[^,]+,/,
      '$1,"low":null,"mid":null,"high":null,"conversionReason":"no-rate",',
    );
    await route.fulfill({ response: answer, body });
  });
  await page.goto(
    `${explorer.address}/explorer#key=${explorer.key}&price=nickel/CP-NI-0001&currency=EUR`,
  );
  await settled(page);
  const [row] = (await page.evaluate(CELLS('.points'))) as string[][];
  t.same(row?.slice(0, 4), ['2026-06-30', 'no rate', 'no rate', 'no rate']);
});

t.test(
  'a change of percentage points has the digits that were sent, and zero no sign',
  async (t) => {
    const { page } = await explorer.open(t);
    await page.route(/v3\/prices\/nickel\?(?!format=rows)/, async (route) => {
      const answer = await route.fetch();
      const { $metadata, data } = await answer.json();
      const change = (absolute: number) => ({ absolute, percent: null, baseDate: '2026-05-29' });
      const percent = { ...change(0), percent: -0.04 };
      const [first, second, third] = [-0.04, 0, null].map((absolute, at) => ({
        ...data[at],
        currency: absolute === null ? (data[at].currency ?? { iso: 'USD' }) : null,
        summary: {
          ...data[at].summary,
          changes: {
            ...data[at].summary.changes,
            month: absolute === null ? percent : change(absolute),
          },
        },
      }));
      await route.fulfill({ response: answer, json: { $metadata, data: [first, second, third] } });
    });
    await page.goto(`${explorer.address}/explorer#key=${explorer.key}&market=nickel`);
    await settled(page);
    const shownChanges = await page.evaluate(
      `[...document.querySelectorAll('.change')]
      .map(({ className, textContent }) => className + ': ' + textContent)`,
    );
    t.same(shownChanges, ['change down: −0.04 pp', 'change: 0 pp', 'change: 0.0 %']);
  },
);

t.test('both readers of JSON keep every digit', async (t) => {
  const { exact, exactByQuotes } = await import(`${modules}api.js`);
  const text = `{"a":7285.10,"b":[-0.10,1e5,0],"c":"x: 5, \\"6\\"","d":null,"e":${LONG},"f":true}`;
  const expected = {
    a: '7285.10',
    b: ['-0.10', '1e5', '0'],
    c: 'x: 5, "6"',
    d: null,
    e: LONG,
    f: true,
  };
  t.same(exact(text), expected);
  t.same(exactByQuotes(text), expected);
});
