import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { keyFor } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { explorerOn, settled } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
const ODD = `<script>alert(1)</script> "quoted" & \u202eright to left ${'long '.repeat(90)}`;

await commit(database.pool, async (client) => {
  await addPrice(client, { code: 'ODD', currency: 'USD', unit: 'tonne' });
  await client.query(`update price set name = $1, short_name = '<b>odd</b>' where code = 'ODD'`, [
    ODD.slice(0, 500),
  ]);
  await putPoints(client, 'ODD', ['2026-06-01', '1', '2', '3'], ['2026-06-02', '1', '2.5', '3']);
});

const explorer = await explorerOn(t, database);
const { viewOf, linkTo } = await import(
  new URL('../../src/explorer/link.js', import.meta.url).href
);

const MARKETS = [{ slug: 'nickel', filters: ['regions', 'codes'] }];

t.test('a link holds the whole view', async (t) => {
  const link =
    '#market=nickel&price=nickel%2FA%26b&price=nickel%2FC&regions=Europe&regions=North-East+Asia' +
    '&from=2026-01-01&to=2026-02-01&currency=EUR&unit=lb&average=month&asOf=2026-03-01' +
    '&index=1&log=1&bands=0';
  const { view, ignored } = viewOf(link, MARKETS);
  t.same(ignored, []);
  t.equal(linkTo(view), link);
});

t.test('a code that no price can have is ignored, and case makes no second line', async (t) => {
  const bad = ['nickel/', `nickel/${'x'.repeat(129)}`, 'nickel/a\tb'];
  const prices = ['nickel/A', 'nickel/a', ...bad].map(encodeURIComponent);
  const { view, ignored } = viewOf(`#price=${prices.join('&price=')}`, MARKETS);
  t.same(view.prices, [{ market: 'nickel', code: 'A' }]);
  t.same(
    ignored.map(({ part }: { part: string }) => part),
    bad.map((price) => `price=${price}`),
  );
});

t.test(
  'a link opened with another key shows the same view, and without one asks for it',
  async (t) => {
    const { page } = await explorer.open(t);
    const hash = '#price=nickel%2FCP-NI-0001&from=2026-06-01&currency=EUR&log=1';
    await page.goto(`${explorer.address}/explorer${hash}`);
    await page.getByLabel('API key').fill(await keyFor(database, ['prices:nickel']));
    await page.getByRole('button', { name: 'Show prices' }).click();
    await settled(page);
    t.equal(new URL(page.url()).hash, hash);
    t.equal(await page.getByLabel('Currency').inputValue(), 'EUR');
    t.equal(await page.getByLabel('From').inputValue(), '2026-06-01');
    t.equal(await page.getByRole('button', { name: 'Log' }).getAttribute('aria-pressed'), 'true');
  },
);

t.test('a link with senseless parts opens, names them, and shows the rest', async (t) => {
  const { page, show } = await explorer.open(t);
  const cases = [
    ['price=nickel/CP-NI-0001&market=gold', 'market=gold'],
    ['price=nickel/CP-NI-0001&price=nickel/CP-NI-0000', 'price=nickel/CP-NI-0000'],
    ['price=nickel/CP-NI-0001&currency=QQQ', 'currency=QQQ'],
    ['price=nickel/CP-NI-0001&currency=%3Cb%3E', 'currency=<b>'],
    ['price=nickel/CP-NI-0001&unit=cubit', 'unit=cubit'],
    ['price=nickel/CP-NI-0001&from=2026-02-30', 'from=2026-02-30'],
    ['price=nickel/CP-NI-0001&from=2026-02-01&to=2026-01-01', 'to=2026-01-01'],
    ['price=nickel/CP-NI-0001&asOf=2199-01-01', 'asOf=2199-01-01'],
    ['price=nickel/CP-NI-0001&colour=red', 'colour=red'],
  ] as const;
  for (const [hash, part] of cases) {
    await show(hash);
    const note = page.locator('.note', { hasText: 'ignored' });
    await note.locator('li code', { hasText: part }).waitFor();
    t.same(await note.locator('li code').allInnerTexts(), [part]);
    t.match(await page.locator('h1').innerText(), 'Nickel metal, exchange cash, London');
  }
});

t.test('more than 20 prices are refused with a hint', async (t) => {
  const { page, show } = await explorer.open(t);
  const price = (market: string, count: number): string[] =>
    Array.from({ length: count }, (_, at) => `price=${market}/X-${at}`);
  await show([...price('nickel', 21)].join('&'));
  await page.getByText('at most 20 prices are shown together').waitFor();
  const codes = [
    ...Array.from({ length: 18 }, (_, at) => `nickel/CP-NI-${String(at + 1).padStart(4, '0')}`),
    'copper/CP-CU-0001',
    'copper/CP-CU-0002',
  ];
  await show(codes.map((code) => `price=${code}`).join('&'));
  await page.keyboard.press('/');
  await page.keyboard.type('CP-CU-0003');
  await page.getByRole('button', { name: 'Add CP-CU-0003' }).click();
  await page.getByText('At most 20 prices fit one chart').waitFor();
});

t.test('names are shown as text, whatever stands in them', async (t) => {
  const visit = await explorer.open(t);
  const { page, show, faults } = visit;
  let dialogs = 0;
  page.on('dialog', (dialog) => {
    dialogs += 1;
    void dialog.dismiss();
  });
  for (const hash of ['price=nickel/ODD', 'code=ODD&market=nickel', 'market=nickel']) {
    await show(hash);
    const text = String(await page.evaluate('document.body.textContent'));
    t.ok(text.includes('<script>alert(1)</script> "quoted" &'), hash);
    t.equal(await page.locator('main script, main b').count(), 0, hash);
    t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 1280, hash);
  }
  await show(`price=nickel/${encodeURIComponent('<img src=x onerror=alert(1)>')}`);
  t.equal(await page.locator('main img').count(), 0);
  t.equal(dialogs, 0);
  t.same(faults, []);
});

t.test('the record of a price opens by its code alone', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('code=CP-NI-0001');
  await page.getByRole('heading', { name: 'Nickel metal, exchange cash, London' }).waitFor();
  await page.getByText('synthetic values for demonstration').waitFor();
  t.match(await page.locator('.corrections tbody').innerText(), /2024-05-14\s+18020.*16820/);
  const names = await page.locator('.attributes dt').allInnerTexts();
  for (const name of ['Code', 'Product', 'Purity', 'Region', 'Latest published at']) {
    t.ok(names.includes(name), name);
  }
  await show('code=CP-NI-0000');
  await page.getByRole('heading', { name: 'No such price' }).waitFor();
});

t.test('with asOf the lists mark the values of today', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('asOf=2024-01-01');
  const heads = await page.locator('.overview th[scope="col"]').allInnerTexts();
  t.same(heads.slice(0, 2), ['Market', 'Prices today']);
  await show('market=nickel&asOf=2024-01-01');
  t.match(await page.locator('.title').innerText(), '(today)');
  t.notMatch(await page.locator('.filters h2').innerText(), 'today', 'the counts are of that time');
});

t.test('with asOf the page shows the past data, and marks them as past', async (t) => {
  const { rows } = await database.pool.query(
    `select to_char(max(committed_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
       from revision`,
  );
  await commit(database.pool, (client) =>
    putPoints(client, 'ODD', ['2026-06-02', '1', '2.75', '3']),
  );
  const { page, show } = await explorer.open(t);
  const mid = (): Promise<string> =>
    page.locator('.points tbody tr >> nth=0 >> td >> nth=1').innerText();
  await show('price=nickel/ODD');
  t.equal(await mid(), '2.75');
  await show(`price=nickel/ODD&asOf=${encodeURIComponent(rows[0].at)}`);
  await page.getByText('As it was known at').waitFor();
  t.equal(await mid(), '2.5');
  await page.getByRole('button', { name: 'Back to now' }).click();
  await settled(page);
  t.equal(await mid(), '2.75');
});
