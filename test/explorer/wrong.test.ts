import t from 'tap';
import { revokeKey } from '../../src/auth/keys/keys.ts';
import { testDatabase } from '../support/database/database.ts';
import { keyFor } from '../support/http/service.ts';
import { explorerOn, settled } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
const explorer = await explorerOn(t, database);

const PROBLEM = 'application/problem+json; charset=utf-8';

t.test(
  'a key that opens nothing brings the sentence of the service and the form again',
  async (t) => {
    const { page } = await explorer.open(t);
    await page.goto(`${explorer.address}/explorer`);
    const enter = async (key: string, code: string): Promise<void> => {
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Show prices' }).click();
      const note = page.getByRole('alert').filter({ hasText: code });
      t.match(await note.innerText(), new RegExp(`^\\S.*\\. ${code} request [0-9a-f-]{36}$`));
    };
    await enter('nonsense', 'invalid_api_key');
    const revoked = await keyFor(database, ['prices:nickel']);
    const [, id = ''] = /^cps_live_([^_]+)/.exec(revoked) ?? [];
    await revokeKey(database.db, id, 'a test');
    await enter(revoked, 'api_key_revoked');
    const expired = await keyFor(database, ['prices:nickel']);
    await database.pool.query(
      `update api_key set created_at = now() - interval '2 days',
        expires_at = now() - interval '1 day' where public_id = $1`,
      [/^cps_live_([^_]+)/.exec(expired)?.[1]],
    );
    await enter(expired, 'api_key_expired');
  },
);

t.test(
  'a key that is revoked meanwhile brings the form, and the view comes back after it',
  async (t) => {
    const { page } = await explorer.open(t);
    const key = await keyFor(database, ['prices:nickel']);
    await page.goto(`${explorer.address}/explorer#key=${key}&price=nickel/CP-NI-0001`);
    await settled(page);
    await revokeKey(database.db, /^cps_live_([^_]+)/.exec(key)?.[1] ?? '', 'a test');
    await page.getByRole('button', { name: '1Y' }).click();
    await page.getByText('api_key_revoked').waitFor();
    await page.getByLabel('API key').fill(explorer.key);
    await page.getByRole('button', { name: 'Show prices' }).click();
    await page.getByRole('heading', { name: 'Nickel metal, exchange cash, London' }).waitFor();
  },
);

t.test('a closed market is listed with the scope that is missing', async (t) => {
  const { page } = await explorer.open(t);
  const key = await keyFor(database, ['prices:nickel']);
  await page.goto(`${explorer.address}/explorer#key=${key}`);
  await settled(page);
  t.same(await page.locator('.overview tbody th').allInnerTexts(), ['Nickel']);
  t.match(await page.locator('.closed').innerText(), 'prices:copper');
  for (const hash of ['market=copper', 'price=copper/CP-CU-0001']) {
    await page.goto('about:blank');
    await page.goto(`${explorer.address}/explorer#key=${key}&${hash}`);
    t.match(await page.getByRole('alert').innerText(), 'prices:copper', hash);
  }
});

for (const [status, code] of [
  [429, 'rate_limited'],
  [503, 'overloaded'],
] as const) {
  t.test(`a ${status} is waited for as it asks, shown, and asked again once`, async (t) => {
    const { page, show } = await explorer.open(t);
    await show('price=nickel/CP-NI-0001');
    const requestedAtMs: number[] = [];
    await page.route('**/v3/prices/nickel?*', async (route) => {
      requestedAtMs.push(Date.now());
      if (requestedAtMs.length !== 1) return route.continue();
      const problem = { status, code, title: 'Too much', detail: 'Ask later', requestId: 'a' };
      await route.fulfill({
        status,
        contentType: PROBLEM,
        headers: { 'retry-after': '1' },
        body: JSON.stringify(problem),
      });
    });
    await page.getByRole('button', { name: '1Y' }).click();
    await page.getByText('Asking again in 1 s').waitFor();
    await page.waitForURL(/from=/);
    await settled(page);
    await page.getByText('Asking again in 1 s').waitFor({ state: 'detached' });
    t.equal(requestedAtMs.length, 2);
    t.ok((requestedAtMs[1] ?? 0) - (requestedAtMs[0] ?? 0) >= 990);
    requestedAtMs.length = 0;
    await page.unrouteAll();
    await page.route('**/v3/prices/nickel?*', async (route) => {
      requestedAtMs.push(Date.now());
      const problem = { status, code, title: 'Too much', detail: 'Ask later', requestId: 'a-b' };
      await route.fulfill({
        status,
        contentType: PROBLEM,
        headers: { 'retry-after': '0' },
        body: JSON.stringify(problem),
      });
    });
    await page.getByRole('button', { name: '3Y' }).click();
    await page.getByRole('alert').filter({ hasText: code }).waitFor();
    t.ok(requestedAtMs.length >= 2);
    await page.getByText('The page asks again by itself').waitFor();
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    await page.unrouteAll();
    await page.locator('.points').waitFor();
  });
}

t.test('while the service is away what is on the screen stays, marked with its time', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001');
  await page.route('**/v3/**', (route) => route.abort());
  await page.getByRole('button', { name: '1Y' }).click();
  const note = page.getByRole('alert').filter({ hasText: 'cannot be reached' });
  t.match(await note.innerText(), /since \d\d:\d\d:\d\d\. The page shows data of \d\d:\d\d:\d\d/);
  t.ok(await page.locator('.points tbody tr').count());
  t.ok(await page.locator('.chart canvas').count());
  await note.getByRole('button', { name: 'Try again' }).click();
  await page.unrouteAll();
  await note.waitFor({ state: 'detached' });
});

t.test('numbers of the view before are marked until the service answers', async (t) => {
  const { page, show } = await explorer.open(t);
  for (const hash of ['price=nickel/CP-NI-0001', 'market=nickel']) {
    await show(hash);
    await page.route('**/v3/**', (route) => route.abort());
    await page.evaluate(`location.hash += '&asOf=2024-01-01'`);
    await page.getByText('As it was known at').waitFor();
    await page.getByText('These numbers are of the view before').waitFor();
    t.equal(await page.locator('.stale[aria-busy="true"]').count(), 1, hash);
    await page.unrouteAll();
    await page.getByText('cannot be reached').waitFor({ state: 'detached' });
    await settled(page);
    t.equal(await page.getByText('These numbers are of the view before').count(), 0, hash);
  }
});

t.test('a closed market takes no open one down', async (t) => {
  const { page } = await explorer.open(t);
  const key = await keyFor(database, ['prices:nickel']);
  const hash = 'price=copper/CP-CU-0001&price=nickel/CP-NI-0001';
  await page.goto(`${explorer.address}/explorer#key=${key}&${hash}`);
  await settled(page);
  const note = page.locator('.note', { hasText: 'ignored' });
  t.match(
    await note.innerText(),
    /price=copper\/CP-CU-0001: this key lacks the scope prices:copper/,
  );
  t.match(await page.locator('h1').innerText(), 'Nickel metal');
});

t.test('a part of the page that does not come says what to do, and comes later', async (t) => {
  const { page } = await explorer.open(t);
  await page.route('**/overview.js', (route) => route.abort());
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}`);
  await page.getByText('The page has changed or the service is away: reload.').waitFor();
  await page.unrouteAll();
  await page.getByRole('link', { name: 'Nickel', exact: true }).waitFor();
});

t.test('without JavaScript a sentence names the address of the CSV', async (t) => {
  const { page } = await explorer.open(t, { javaScriptEnabled: false });
  await page.goto(`${explorer.address}/explorer`);
  const text = await page.locator('main').innerText();
  t.match(text, '/v3/prices/<market>?includeSeries=true&format=csv');
  t.match(text, 'x-api-key');
});

t.test('an empty database brings the commands that load prices', async (t) => {
  const empty = await explorerOn(t, await testDatabase(t));
  const { page, show } = await empty.open(t);
  await show('');
  await page.getByRole('heading', { name: 'There are no prices yet' }).waitFor();
  await page.getByText('db seed').waitFor();
});
