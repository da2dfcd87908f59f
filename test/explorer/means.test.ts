import { readFile } from 'node:fs/promises';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, putPoints, putRates } from '../support/prices/sample-writes.ts';
import { explorerOn, settled, words } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });

/** Dollars for a euro on each weekday from February to April: 2 on 10 March, else 1.25. */
const weekdays = Array.from({ length: 59 }, (_, day) => new Date(Date.UTC(2026, 1, 2 + day)))
  .filter((date) => date.getUTCDay() % 6 !== 0)
  .map((date) => date.toISOString().slice(0, 10));
const RATES = {
  ...Object.fromEntries(weekdays.map((date) => [date, '1.25'])),
  '2026-03-10': '2',
};

await commit(database.pool, async (client) => {
  await putRates(client, 'ECB', 'USD', RATES);
  for (const code of ['MEAN', 'DAY']) {
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: 'copper' });
    await putPoints(client, code, ['2026-03-31', null, '1000', null]);
  }
  await client.query(`update price set observes = 'month-mean' where code = 'MEAN'`);
});
const explorer = await explorerOn(t, database);

t.test('means are converted by the mean rates of their period on demand', async (t) => {
  const { page, show } = await explorer.open(t);
  const rates = page.getByLabel('Rates of means');
  await show('price=copper/DAY&currency=EUR');
  t.equal(await rates.count(), 0, 'values of a day have no mean rate');
  await show('price=copper/MEAN&currency=EUR');
  const mid = page.locator('.readout .strong');
  t.equal(words(await mid.innerText()), '800');
  const remarks = page.locator('.remarks');
  t.match(await remarks.innerText(), 'was converted at the rate of one day');
  t.match(
    await remarks.innerText(),
    'Choose “Rates of means: Mean of the period” for the mean of the rates of its period',
  );
  t.notMatch(await remarks.innerText(), 'options.');
  await rates.selectOption('period-mean');
  await page.waitForURL(/currency=EUR&rates=period-mean$/);
  await settled(page);
  // March has 22 weekdays: (21 ÷ 1.25 + 1 ÷ 2) ÷ 22 = 0.78636…
  t.equal(words(await mid.innerText()), '786.364');
  t.equal(await remarks.count(), 0);
  const heads = await page.locator('.points thead th').allInnerTexts();
  const cells = await page.locator('.points tbody tr').first().locator('th, td').allInnerTexts();
  const row = Object.fromEntries(heads.map((head, at) => [words(head), words(`${cells[at]}`)]));
  t.match(row, {
    'Mean rate': '0.7863636364',
    'Rate days': '22',
    'First rate': '2026-03-02',
    'Last rate': '2026-03-31',
  });
  t.match(await page.locator('.receipt').innerText(), 'ECB, period-mean');
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV', exact: true }).click(),
  ]);
  const [head = '', first = ''] = (await readFile(await file.path(), 'utf8')).split('\r\n');
  t.match(head, 'fxMeanRate,fxMeanFirstDate,fxMeanLastDate,fxMeanDays');
  t.match(first, '0.7863636364,2026-03-02,2026-03-31,22');
});

t.test('a link with rates keeps them on the record and in lists', async (t) => {
  const { page, show, requests } = await explorer.open(t);
  for (const view of ['code=MEAN&market=copper', 'market=copper']) {
    requests.length = 0;
    await show(`${view}&currency=EUR&rates=period-mean`);
    const asked = requests.map((request) => request.url());
    t.ok(
      asked.some((url) => url.includes('/copper?') && url.includes('&rates=period-mean')),
      view,
    );
  }
  await show('price=copper/MEAN&currency=EUR&rates=last-day');
  t.match(await page.locator('.note', { hasText: 'ignored' }).innerText(), 'rates=last-day');
});

t.test('a price whose values are means is marked, in a chart, a list and a citation', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=copper/MEAN&price=copper/DAY');
  const row = (code: string) => page.locator('tbody tr', { hasText: `Price ${code}` }).first();
  t.equal(await row('MEAN').locator('.mark').innerText(), 'monthly mean');
  t.equal(await row('DAY').locator('.mark').count(), 0);
  await show('market=copper');
  t.equal(await row('MEAN').locator('.mark').innerText(), 'monthly mean');
  t.equal(await row('DAY').locator('.mark').count(), 0);
  await show('code=MEAN&market=copper');
  t.match(await page.locator('.cite').innerText(), '; 1000 USD/t, mean of March 2026; revision');
});

t.test('an average of a part of a period is named, on the page', async (t) => {
  const { page, show } = await explorer.open(t);
  const note = page.locator('.note', { hasText: 'The average of the' });
  await show('price=copper/DAY&average=month&from=2026-03-01&to=2026-03-31');
  t.equal(await note.count(), 0, 'a whole month');
  await show('price=copper/DAY&average=month&from=2026-03-02');
  t.equal(
    words(await note.innerText()),
    'The average of the first month has only its values from 2026-03-02 on.',
  );
  await show('price=copper/DAY&average=quarter&from=2026-01-01&to=2026-03-31');
  t.equal(await note.count(), 0, 'a whole quarter');
  await show('price=copper/DAY&average=year&to=2026-06-30');
  t.match(words(await note.innerText()), 'last year has only its values until 2026-06-30.');
});
