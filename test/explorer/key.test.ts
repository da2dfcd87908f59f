import type { Page } from 'playwright-core';
import t from 'tap';
import { revokeKey } from '../../src/auth/keys/keys.ts';
import { testDatabase } from '../support/database/database.ts';
import { keyFor } from '../support/http/service.ts';
import { explorerOn, settled, type Visit } from '../support/process/explorer.ts';

const database = await testDatabase(t, { seeded: true });
const explorer = await explorerOn(t, database);

const publicPart = (key: string): string => key.slice(0, 'cps_live_'.length + 10);

/** The question about the key of a link. */
const question = (page: Page) => page.getByRole('alert').filter({ hasText: 'another API key' });

/** The keys of the requests since the last call. */
function keysSent({ requests }: Visit): string[] {
  const keys = requests.splice(0).flatMap((request) => request.headers()['x-api-key'] ?? []);
  return [...new Set(keys)];
}

const nickelKey = (): Promise<string> => keyFor(database, ['prices:nickel']);

t.test('a link with another key asks first, and a refusal keeps the key in use', async (t) => {
  const visit = await explorer.open(t);
  const { page, show } = visit;
  await show('market=nickel');
  keysSent(visit);
  const other = await nickelKey();
  await page.evaluate(`location.hash = 'key=${other}&market=copper'`);
  const note = question(page);
  const text = await note.innerText();
  t.match(text, publicPart(other));
  t.match(text, publicPart(explorer.key));
  await page.getByRole('heading', { name: 'Copper' }).waitFor();
  await settled(page);
  t.equal(page.url(), `${explorer.address}/explorer#market=copper`);
  t.notOk((await page.content()).includes(other), 'the secret is not shown');
  await note.getByRole('button', { name: 'Keep my key' }).click();
  await note.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Markets' }).click();
  await settled(page);
  t.same(keysSent(visit), [explorer.key]);
  t.ok((await page.locator('.overview tbody tr').count()) > 1);
  t.equal(await question(page).count(), 0);
});

t.test('a link with another key replaces the key in use after consent', async (t) => {
  const visit = await explorer.open(t);
  const { page, show } = visit;
  await show('');
  const other = await nickelKey();
  await page.evaluate(`location.hash = 'key=${other}'`);
  await question(page).waitFor();
  keysSent(visit);
  await page.getByRole('button', { name: 'Use the key of the link' }).click();
  await page.getByText('Closed to this key').waitFor();
  await settled(page);
  t.same(keysSent(visit), [other]);
  t.equal(await question(page).count(), 0);
  t.equal(page.url(), `${explorer.address}/explorer`);
});

t.test('a link asks before it replaces a remembered key, in a page that loads', async (t) => {
  const visit = await explorer.open(t);
  const { page } = visit;
  const kept = await nickelKey();
  await page.goto(`${explorer.address}/explorer`);
  await page.getByLabel('API key').fill(kept);
  await page.getByLabel('Remember in this tab').check();
  await page.getByRole('button', { name: 'Show prices' }).click();
  await settled(page);
  await page.goto('about:blank');
  keysSent(visit);
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}`);
  await question(page).getByRole('button', { name: 'Keep my key' }).click();
  await settled(page);
  t.same(keysSent(visit), [kept]);
  t.equal(await page.evaluate('Object.values(sessionStorage).join()'), kept);
  await page.goto('about:blank');
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}`);
  await page.getByRole('button', { name: 'Use the key of the link' }).click();
  await page.getByRole('link', { name: 'Copper', exact: true }).waitFor();
  t.equal(await page.evaluate('sessionStorage.length'), 0);
});

t.test('a key that is not valid any more is replaced without a question', async (t) => {
  const { page } = await explorer.open(t);
  const copper = page.getByRole('link', { name: 'Copper', exact: true });
  for (const isLoaded of [false, true]) {
    const old = await nickelKey();
    await page.goto('about:blank');
    await page.goto(`${explorer.address}/explorer`);
    await page.getByLabel('API key').fill(old);
    await page.getByLabel('Remember in this tab').check();
    await page.getByRole('button', { name: 'Show prices' }).click();
    await settled(page);
    await revokeKey(database.db, publicPart(old).slice('cps_live_'.length), 'a test');
    if (!isLoaded) await page.goto('about:blank');
    await page.goto(`${explorer.address}/explorer#key=${explorer.key}`);
    await copper.waitFor();
    t.equal(await question(page).count(), 0);
    t.equal(await page.evaluate('sessionStorage.length'), 0);
  }
});

t.test('neither a first visit nor a link with the same key asks', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  t.equal(await question(page).count(), 0);
  await page.goto(`${explorer.address}/explorer#key=${explorer.key}&market=copper`);
  await page.getByRole('heading', { name: 'Copper' }).waitFor();
  await settled(page);
  t.equal(await question(page).count(), 0);
  t.equal(page.url(), `${explorer.address}/explorer#market=copper`);
});

t.test('a text in place of a key replaces no key, and is named without its value', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.goto(`${explorer.address}/explorer#key=cps_live_nonsense&market=copper`);
  await page.getByRole('heading', { name: 'Copper' }).waitFor();
  await settled(page);
  const note = page.locator('.note', { hasText: 'ignored' });
  t.match(await note.innerText(), /key: it is not an API key/);
  t.notOk((await page.content()).includes('cps_live_nonsense'));
});

t.test('while the service is away a link with another key waits with its question', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.route('**/v3/**', (route) => route.abort());
  await page.evaluate(`location.hash = 'key=${await nickelKey()}'`);
  await page.getByText('cannot be reached').waitFor();
  t.equal(await question(page).count(), 0);
  await page.unrouteAll();
  await question(page).waitFor();
  await page.getByText('cannot be reached').waitFor({ state: 'detached' });
  t.ok((await page.locator('.overview tbody tr').count()) > 1);
});
