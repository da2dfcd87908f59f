import type { Page } from 'playwright-core';
import { type Explorer, settled, type Visit } from './explorer.ts';

/** A stop of a walk: its name, and the page as it is there. */
type Stop = (name: string, page: Page) => Promise<void>;

/** Opens the controls of a chart or the filters of a market, which are folded on a phone. */
export async function unfold(page: Page): Promise<void> {
  const fold = page.locator('.fold:not([open]) > summary');
  if (await fold.isVisible()) await fold.click();
}

/** Enters the key as a reader does. */
export async function signIn({ address, key }: Explorer, { page }: Visit): Promise<void> {
  await page.goto(`${address}/explorer`);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Show prices' }).click();
  await settled(page);
}

const click = async (page: Page, name: string | RegExp): Promise<void> => {
  await page
    .getByRole('button', { name, exact: typeof name === 'string' })
    .first()
    .click();
  await settled(page);
};

async function chooseOptions(page: Page, stop: Stop): Promise<void> {
  await page.getByLabel('Currency').selectOption('EUR');
  await settled(page);
  await page.getByLabel('Unit').selectOption('lb');
  await settled(page);
  await page.getByLabel('Average').selectOption('month');
  await settled(page);
  await page.getByRole('heading', { name: 'Conversion' }).waitFor();
  await stop('converted', page);
  await page.getByLabel('As of').fill('2020-01-01');
  await page.getByText('As it was known at').waitFor();
  await settled(page);
  await stop('past', page);
  await click(page, 'Back to now');
}

async function drag(page: Page): Promise<void> {
  const plot = page.locator('.chart .u-over').first();
  // Unlike scrolling alone, this waits for the chart that replaces a chart of another width.
  await plot.hover();
  const box = await plot.boundingBox();
  if (box === null) throw new Error('there is no chart');
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  await settled(page);
}

/**
 * Walks through every view of the page with a key that opens every market of the sample, and
 * stops at each.
 */
export async function walk(explorer: Explorer, visit: Visit, stop: Stop): Promise<void> {
  const { page } = visit;
  await page.goto(`${explorer.address}/explorer`);
  await stop('sign-in', page);
  await signIn(explorer, visit);
  await stop('overview', page);
  await page.getByRole('link', { name: 'Nickel', exact: true }).click();
  await settled(page);
  const europe = page.getByLabel('Europe');
  await europe.waitFor({ state: 'attached' });
  // On a narrow screen the filters are folded, and each of them is closed.
  await unfold(page);
  if (!(await europe.isVisible())) await page.locator('summary', { hasText: 'Regions' }).click();
  await europe.check();
  await settled(page);
  await page.getByLabel('Choose CP-NI-0003').check();
  await stop('market', page);
  await page.getByRole('link', { name: 'Show chart' }).click();
  // The new view empties the search.
  await page.locator('.chart .u-over').first().waitFor();
  await settled(page);
  await page.keyboard.press('/');
  await page.keyboard.type('CP-NI-0011');
  await page.getByRole('button', { name: 'Add CP-NI-0011' }).waitFor();
  await stop('search', page);
  await click(page, 'Add CP-NI-0011');
  await stop('chart', page);
  await drag(page);
  await unfold(page);
  await click(page, '1Y');
  await click(page, 'Index');
  await stop('index', page);
  await click(page, 'Index');
  await click(page, 'Log');
  await click(page, 'Log');
  await chooseOptions(page, stop);
  await click(page, 'Code');
  for (const name of ['Python', 'R', 'Excel (Power Query)', 'TypeScript']) await click(page, name);
  await stop('take-away', page);
  for (const name of ['CSV', 'PNG of the chart']) {
    const [saved] = await Promise.all([page.waitForEvent('download'), click(page, name)]);
    await saved.delete();
  }
  await page
    .getByRole('link', { name: /Nickel briquette/ })
    .first()
    .click();
  await page.getByRole('heading', { name: 'Specification' }).waitFor();
  await settled(page);
  await stop('record', page);
}
