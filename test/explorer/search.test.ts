import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { explorerOn, words } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });

/** More prices of a market than one request of the page has. */
const BULK = Array.from({ length: 101 }, (_, at) => `BULK${at + 1_000}`);

await commit(database.pool, async (client) => {
  await addPrice(client, { code: 'GALVANIC', currency: 'USD', unit: 'tonne', market: 'copper' });
  await putPoints(client, 'GALVANIC', ['2026-03-03', null, '12345.67', null]);
  await addPrice(client, { code: 'GALVANIC-CO', currency: 'USD', unit: 'tonne', market: 'cobalt' });
  await putPoints(client, 'GALVANIC-CO', ['2026-03-03', null, '765.43', null]);
  for (const code of BULK) {
    await addPrice(client, { code, currency: 'USD', unit: 'tonne', market: 'aluminium' });
  }
  await putPoints(client, `${BULK.at(-1)}`, ['2026-03-03', null, '1', null]);
});
// The clock of JavaScript has milliseconds: its time may lie before the commit.
const BEFORE = String(
  (
    await database.pool.query(
      `select to_char(clock_timestamp() at time zone 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    )
  ).rows[0].now,
);
await commit(database.pool, (client) =>
  putPoints(client, 'GALVANIC', ['2026-03-04', null, '23456.78', null]),
);

const explorer = await explorerOn(t, database);

/** The answer of the service to a search. */
async function found(text: string, limit: number) {
  const answer = await fetch(`${explorer.address}/v3/search?q=${text}&limit=${limit}`, {
    headers: { 'x-api-key': explorer.key },
  });
  return (await answer.json()) as {
    readonly $metadata: { readonly total: number };
    readonly data: { readonly code: string; readonly priceCategory: { readonly name: string } }[];
  };
}

t.test('a search says how many prices match, and shows them all on demand', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const { $metadata, data } = await found('china', 500);
  t.ok($metadata.total > 100);
  const results = page.locator('.results');
  const links = results.locator('li a');
  await page.getByRole('searchbox').fill('china');
  await results.getByText(`12 of ${$metadata.total}`).waitFor();
  t.equal(await links.count(), 12);
  await results.getByRole('button', { name: 'Show all' }).click();
  await results.getByText(`${$metadata.total} of ${$metadata.total}`).waitFor();
  t.same(
    await results.locator('li code').allInnerTexts(),
    data.map(({ code }) => code),
  );
  t.equal(await results.getByRole('button', { name: 'Show all' }).count(), 0);
  t.equal(await page.evaluate('document.activeElement.type'), 'search', 'the focus stays');
  // The last result can be reached, and opens.
  await links.last().click();
  await page.waitForURL(new RegExp(`#price=[^&]*${data.at(-1)?.code}$`));
  await page.getByRole('searchbox').fill('chin');
  await results.getByText(/^12 of \d+$/).waitFor();
});

t.test('a result has its category, and its newest value with unit and day', async (t) => {
  const { page, show } = await explorer.open(t);
  const result = page.locator('.results li').first();
  const search = async (hash: string): Promise<string> => {
    await show(hash);
    await page.getByRole('searchbox').fill('galvanic');
    await result.locator('.day').waitFor();
    return words(await result.innerText());
  };
  const now = await search('');
  t.match(now, /^Price GALVANIC \S.* GALVANIC Copper/);
  t.match(now, '23456.78 USD/t 2026-03-04');
  const { data } = await found('galvanic', 1);
  t.equal(await result.locator('.kind').innerText(), data[0]?.priceCategory.name);
  t.match(await search(`asOf=${BEFORE}`), '12345.67 USD/t 2026-03-03', 'the value at that time');
});

t.test('results whose values do not come can be opened', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.route('**/v3/prices/copper?*', (route) => route.abort());
  await page.getByRole('searchbox').fill('galvanic');
  await page.getByText('The service cannot be reached').waitFor();
  const result = page.locator('.results li').first();
  t.match(words(await result.innerText()), /USD\/t$/, 'the unit is known');
  await page.unrouteAll();
  await result.locator('.day').waitFor();
  await result.locator('a').click();
  await page.waitForURL(/#price=copper%2FGALVANIC$/);
});

t.test('a market that fails costs no other market its values', async (t) => {
  const { page, requests, show } = await explorer.open(t);
  await show('');
  const slow = { code: 'rate_limited', title: 'Too many requests' };
  await page.route('**/v3/prices/cobalt?*', (route) =>
    route.fulfill({
      status: 429,
      headers: { 'retry-after': '3600' },
      contentType: 'application/problem+json',
      json: slow,
    }),
  );
  await page.getByRole('searchbox').fill('galvanic');
  const [copper, cobalt] = ['GALVANIC', 'GALVANIC-CO'].map((code) =>
    page.locator('.results li', { has: page.getByText(code, { exact: true }) }),
  );
  await copper?.locator('.day').waitFor();
  t.match(words(`${await cobalt?.innerText()}`), /USD\/t$/, 'the unit is known');
  await page.unrouteAll();
  const asked = (market: string): number =>
    requests.filter((each) => each.url().includes(`/v3/prices/${market}?codes=GALVANIC`)).length;
  const before = asked('copper');
  // The page asks again at once, and only for the missing value.
  await page.evaluate(`dispatchEvent(new Event('online'))`);
  await cobalt?.locator('.day').waitFor();
  t.ok(await copper?.locator('.day').isVisible());
  t.equal(asked('copper'), before);
});

t.test('all results have their values, also more than one request has', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.getByRole('searchbox').fill('bulk');
  await page.locator('.results').getByRole('button', { name: 'Show all' }).click();
  await page
    .locator('.results li', { hasText: `${BULK.at(-1)}` })
    .locator('.day')
    .waitFor();
});

t.test('a result that only resembles the text is marked, with the text that matches', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const results = page.locator('.results');
  const marks = results.locator('li .mark', { hasText: 'similar' });
  for (const text of ['galvanci', 'nickel copper rotterdam']) {
    await page.getByRole('searchbox').fill(text);
    await results.getByText(`Nothing matches “${text}” as it is written`).waitFor();
    t.equal(await marks.count(), await results.locator('li').count(), text);
    t.match(await page.getByRole('status').allInnerTexts(), [/similar results$/]);
  }
  await page.getByRole('searchbox').fill('galvanci');
  await results.getByRole('button', { name: 'galvanic', exact: true }).click();
  await marks.first().waitFor({ state: 'detached' });
  t.equal(await results.getByText('Nothing matches').count(), 0);
  t.equal(await results.locator('li code').first().innerText(), 'GALVANIC');
});
