import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { explorerOn, keepPicture, settled } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
const { pool } = database;

await commit(pool, async (client) => {
  await addPrice(client, { code: '0-NI', currency: 'USD', unit: 'tonne', market: 'nickel' });
  await addPrice(client, { code: '0-CU', currency: 'USD', unit: 'tonne', market: 'copper' });
  for (const code of ['0-NI', '0-CU']) {
    await putPoints(client, code, ['2026-03-02', '18000', '18100.50', '18200']);
    await putPoints(client, code, ['2026-03-03', null, '18200', null]);
  }
});

const of = (code: string, date: string): string =>
  `where date = '${date}' and price_id = (select id from price where code = '${code}')`;

const correct = (code: string, mid: string): Promise<unknown> =>
  inRevision(
    pool,
    `update series set mid = ${mid}, corrections = corrections + 1 ${of(code, '2026-03-02')}`,
  );

await correct('0-NI', '18150.25');
await inRevision(pool, `delete from series ${of('0-CU', '2026-03-03')}`);

const explorer = await explorerOn(t, database);
const words = (text: string): string => text.replace(/\s+/g, ' ').trim();

t.test(
  'corrections show the values before and after, the newest first, with the record',
  async (t) => {
    const { page, show, faults } = await explorer.open(t);
    await show('');
    await page.getByRole('link', { name: 'Corrections' }).click();
    await settled(page);
    await page.getByRole('link', { name: 'Last 7 days' }).click();
    await settled(page);
    const rows = async () =>
      (await page.locator('.corrections tbody tr').allInnerTexts()).map(words);
    const shown = (await rows()).map((row) => row.replace(/^\S+ \S+ UTC /, ''));
    // The samples have corrections of their own, which are older.
    t.strictSame(shown.slice(0, 2), [
      '0-CU Price 0-CU 2026-03-03 18200 withdrawn',
      '0-NI Price 0-NI 2026-03-02 18100.5 (18000 to 18200) 18150.25 (18000 to 18200)',
    ]);
    await keepPicture(page, 'corrections');
    await show('corrections=month&market=copper');
    t.match((await rows())[0], /0-CU .*withdrawn/);
    t.notOk(
      (await rows()).some((row) => row.includes('0-NI')),
      'of one market',
    );
    await page.getByRole('link', { name: '0-CU' }).click();
    await settled(page);
    t.match(page.url(), /code=0-CU/);
    t.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
    t.same(faults, []);
  },
);

t.test('a second visit shows the corrections since the first, and nothing twice', async (t) => {
  const { page, show } = await explorer.open(t);
  const rows = () => page.locator('.corrections tbody tr').count();
  await show('corrections=visit');
  t.match(await page.locator('main').innerText(), /no earlier visit: these are the last 7 days/);
  const before = await rows();
  t.ok(before > 2);
  await show('corrections=visit');
  t.match(await page.locator('main').innerText(), /No point was corrected or withdrawn/);
  await correct('0-CU', '18160');
  await show('corrections=visit');
  t.equal(await rows(), 1);
  // The service starts another epoch: it does not know the position any more.
  await pool.query("update service set epoch = 'zzzzzz'");
  await show('corrections=visit');
  t.equal(await rows(), before + 1, 'the last 7 days');
});
