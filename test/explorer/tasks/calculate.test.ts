import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { commit, putPoints } from '../../support/prices/sample-writes.ts';
import { brokenRules } from '../../support/process/accessibility.ts';
import { explorerOn, keepPicture, settled, words } from '../../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
// The published point follows invented ones, which a calculation still uses.
await commit(database.pool, (client) =>
  putPoints(client, 'CP-RC-0001', ['2026-06-30', '74', '75', '76']),
);
const explorer = await explorerOn(t, database);
const run = promisify(execFile);

const linkOf = (body: object): string => `calculate=${encodeURIComponent(JSON.stringify(body))}`;

interface Answer {
  readonly data: readonly {
    readonly anchor: string;
    readonly value: number;
    readonly unit: string;
    readonly status: string;
    readonly steps: readonly { readonly exact: string }[];
    readonly inputs: Readonly<
      Record<string, { readonly sessions: readonly object[]; readonly notUsed: readonly object[] }>
    >;
  }[];
}

/** The answer of the service. */
const computed = async (body: object) => {
  const answer = await fetch(`${explorer.address}/v3/calculations`, {
    method: 'POST',
    headers: { 'x-api-key': explorer.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as Answer;
};

const MONTH = {
  inputs: { nickel: { code: 'CP-NI-0001', period: 'M-1' } },
  anchor: '2026-06-24',
  result: { decimals: 2 },
};

const BLACK_MASS = {
  formula: 'payable * nickel * content',
  inputs: {
    payable: { code: 'CP-RC-0001', side: 'low', period: 'S' },
    nickel: { code: 'CP-NI-0001', period: 'M-1' },
    content: { value: '18', unit: '%', note: 'assay 4711' },
  },
  anchor: '2026-06-24',
  result: { unit: 'USD/t', decimals: 2 },
};

const result = async (page: Page): Promise<string> =>
  words(await page.locator('.result').innerText());

const calculate = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Calculate', exact: true }).click();
  await settled(page);
};

for (const [width, height] of [
  [1280, 900],
  [390, 844],
] as const) {
  t.test(`an analyst settles a month from the overview by the keyboard, ${width} px`, async (t) => {
    const { page, show, faults } = await explorer.open(t, { viewport: { width, height } });
    await show('');
    await page.getByRole('link', { name: 'Calculate' }).focus();
    await page.keyboard.press('Enter');
    const search = page.getByLabel('Find a price or payable');
    await search.focus();
    await page.keyboard.type('CP-NI-0001');
    await page.locator('.calculation .results a', { hasText: 'CP-NI-0001' }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByLabel('Day (anchor)').waitFor();
    t.equal(await page.getByLabel('Day (anchor)').inputValue(), '2026-07-01', 'the samples end');
    await page.getByLabel('Period').focus();
    await page.keyboard.press('Enter');
    await page.locator('.result').waitFor();
    const { data } = await computed({ ...MONTH, anchor: '2026-07-01' });
    t.equal(words(await page.locator('.result .big').innerText()), String(data[0]?.value));
    t.match(await result(page), /USD\/t (Final|Unverified|Provisional)/);
    const hint = page.locator('.input', { hasText: 'Period' });
    t.match(words(await hint.innerText()), "The month before the anchor's: 1 – 30 June 2026.");
    t.same(await brokenRules(page), []);
    t.same(faults, []);
    await keepPicture(page, `calculate-${width}`);
    const over = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    t.equal(over, 0, 'nothing is wider than the screen');
  });
}

t.test(
  'a link holds the calculation: another person sees the figures of the service',
  async (t) => {
    const { page, show, faults } = await explorer.open(t);
    await show(linkOf(BLACK_MASS));
    await page.locator('.result').waitFor();
    const { data } = await computed(BLACK_MASS);
    const [first] = data;
    t.equal(first?.value, 2331.79);
    const { inputs = {}, steps = [] } = first ?? {};
    const { sessions = [], notUsed = [] } = inputs['nickel'] ?? {};
    t.match(await result(page), /2331\.79 USD\/t/);
    await page.getByText('Sample data: CP-NI-0001, CP-RC-0001').waitFor();
    t.equal(await page.getByRole('textbox', { name: 'Formula' }).inputValue(), BLACK_MASS.formula);
    t.equal(await page.getByLabel('Note').inputValue(), 'assay 4711');
    const rows = page.getByRole('region', { name: 'Sessions of nickel' }).locator('tbody tr');
    t.equal(await rows.count(), sessions.length + notUsed.length);
    t.match(words(await rows.allInnerTexts().then((all) => all.join(' '))), /closed: /);
    const operations = page.getByRole('region', { name: 'Steps of the formula' });
    t.equal(await operations.locator('tbody tr').count(), steps.length);
    t.match(words(await operations.innerText()), String(steps.at(-1)?.exact));
    t.same(await brokenRules(page), []);
    t.same(faults, []);
  },
);

t.test('a link with a short form shows its figure, and counts as unchanged', async (t) => {
  const body = { average: 'CP-NI-0001', period: 'M-1', anchor: '2026-06-24' };
  const { page } = await explorer.open(t);
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}&${linkOf(body)}`);
  await page.locator('#take-away').waitFor();
  t.notMatch(await page.locator('main').innerText(), 'The form has changed');
});

t.test('a refusal of the service stands at the field that it names', async (t) => {
  const { page, show } = await explorer.open(t);
  const inputs = { ...BLACK_MASS.inputs, nickel: { code: 'CP-NI-9999', period: 'M-x' } };
  await show(linkOf({ ...BLACK_MASS, inputs, result: { unit: 'EUR/t' } }));
  const field = page.locator('fieldset', { hasText: 'nickel' }).getByLabel('Period');
  t.equal(await field.getAttribute('aria-invalid'), 'true');
  t.match(await page.locator('fieldset', { hasText: 'nickel' }).innerText(), /This is no period/);
  await field.fill('M-1');
  await calculate(page);
  const code = page.locator('fieldset', { hasText: 'nickel' }).getByLabel('Code');
  t.equal(await code.getAttribute('aria-invalid'), 'true');
  await code.fill('CP-NI-0001');
  await calculate(page);
  const unit = page.getByLabel('Unit to check');
  t.equal(await unit.getAttribute('aria-invalid'), 'true');
  await unit.fill('USD/t');
  await calculate(page);
  t.match(await result(page), /2331\.79|USD\/t/);
  t.equal(await page.locator('[aria-invalid]').count(), 0);
});

t.test(
  'a series has a chart and a row for each anchor, and files that programs repeat',
  async (t) => {
    const { page, show, faults } = await explorer.open(t);
    const anchor = { from: '2026-01', to: '2026-06', every: 'month' };
    const body = { ...BLACK_MASS, anchor };
    await show(linkOf(body));
    await page.locator('.results-chart path').waitFor();
    t.equal(
      await page.getByRole('region', { name: 'Results by anchor' }).locator('tbody tr').count(),
      6,
    );
    await page.getByRole('button', { name: 'Show 2026-02-01' }).click();
    t.match(words(await page.getByLabel('Input nickel').innerText()), /1 – 31 January 2026/);
    t.same(await brokenRules(page), []);
    await keepPicture(page, 'calculate-series');
    const saved = async (name: string) => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name, exact: true }).click(),
      ]);
      return file;
    };
    const csv = await readFile(await (await saved('CSV')).path(), 'utf8');
    const answer = await fetch(`${explorer.address}/v3/calculations`, {
      method: 'POST',
      headers: {
        'x-api-key': explorer.key,
        'content-type': 'application/json',
        accept: 'text/csv',
      },
      body: JSON.stringify(body),
    });
    t.equal(csv, await answer.text());
    const png = await readFile(await (await saved('PNG of the chart')).path());
    t.same([...png.subarray(1, 4)], [...Buffer.from('PNG')]);
    await page.getByRole('button', { name: 'Code', exact: true }).click();
    const program = async (name: string): Promise<string> => {
      await page.getByRole('button', { name, exact: true }).click();
      return page.locator('pre').innerText();
    };
    const env = { ...process.env, COMMODITY_PRICES_KEY: explorer.key, NODE_OPTIONS: '' };
    const { data } = await computed(body);
    const printed = await run('python3', ['-c', await program('Python')], { env });
    t.same(
      printed.stdout
        .trim()
        .split('\n')
        .map((row) => row.split('\t')),
      data.map(({ anchor, value, unit, status }) => [anchor, String(value), unit, status]),
    );
    const curl = await run('sh', ['-c', await program('curl')], { env });
    t.equal(curl.stdout, csv);
    t.match(await program('Excel (Power Query)'), /Content = Text\.ToBinary\(Calculation\)/);
    t.match(await program('TypeScript'), /method: 'POST'/);
    t.same(faults, []);
  },
);

t.test('an analyst values black mass from the overview', async (t) => {
  const { page, show, faults } = await explorer.open(t);
  await show('');
  await page.getByRole('link', { name: 'Calculate' }).click();
  await page.getByRole('button', { name: 'Payable value' }).click();
  const find = async (label: string, code: string) => {
    await page.getByLabel(label).fill(code);
    await page.locator('.calculation .results a', { hasText: code }).click();
  };
  await find('Find a payable', 'CP-RC-0001');
  await page.getByRole('textbox', { name: 'Code', exact: true }).first().waitFor();
  // The service may not know the reference of a payable.
  const isAsked = await page.getByLabel('Find a price or payable').count();
  if (isAsked > 0) await find('Find a price or payable', 'CP-NI-0001');
  if (isAsked === 0) {
    // The references of nickel and cobalt are published in different units.
    await page.getByRole('button', { name: 'Add payable' }).click();
    await find('Find a payable', 'CP-RC-0002');
    // Several payables need the content of each.
    const contents = page.getByLabel('Content, %');
    await contents.nth(0).fill('22');
    await contents.nth(1).fill('9');
  }
  await calculate(page);
  const link = new URLSearchParams(new URL(page.url()).hash.slice(1));
  const { data } = await computed(JSON.parse(String(link.get('calculate'))));
  t.equal(words(await page.locator('.result .big').innerText()), String(data[0]?.value));
  t.match(words(await page.locator('main').innerText()), 'CP-NI-0001', 'the reference');
  t.same(await brokenRules(page), []);
  t.same(faults, []);
});

t.test('the search for a payable finds no price', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(linkOf({ payables: [{ code: '' }], period: 'S' }));
  await page.getByLabel('Find a payable').fill('cobalt');
  await page.locator('.calculation .results a').first().waitFor();
  const found = await page.locator('.calculation .results .latest').allInnerTexts();
  t.ok(found.length > 0);
  for (const each of found) t.match(each, '%');
});

t.test('a record fills a calculation, and a template replaces it', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('code=CP-NI-0001&market=nickel');
  const link = String(await page.getByRole('link', { name: 'Calculate' }).getAttribute('href'));
  const body = JSON.parse(String(new URLSearchParams(link.slice(1)).get('calculate')));
  t.match(body, { average: 'CP-NI-0001', period: 'M-1', anchor: '2026-07-01' });
  await show('code=CP-RC-0001&market=recycling');
  await page.getByRole('link', { name: 'Calculate' }).click();
  const code = page.getByRole('textbox', { name: 'Code', exact: true });
  t.equal(await code.inputValue(), 'CP-RC-0001');
  await page.getByRole('button', { name: 'Formula', exact: true }).click();
  const formula = page.getByRole('textbox', { name: 'Formula' });
  t.match(await formula.inputValue(), /\* \(1 - discount\) \+ premium$/);
});
