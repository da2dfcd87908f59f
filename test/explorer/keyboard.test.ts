import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { brokenRules } from '../support/process/accessibility.ts';
import { explorerOn } from '../support/process/explorer.ts';
import { signIn, walk } from '../support/process/explorer-walk.ts';

const explorer = await explorerOn(t, await seededDatabase(t));

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`no view breaks a rule of WCAG 2.2 AA, ${colorScheme}`, async (t) => {
    const visit = await explorer.open(t, { colorScheme });
    await walk(explorer, visit, async (name, page) => {
      t.same(await brokenRules(page), [], name);
    });
    for (const path of ['docs/problems', 'help/explorer', 'help/formats', 'help/conversion']) {
      await visit.page.goto(`${explorer.address}/${path}`);
      t.same(await brokenRules(visit.page), [], path);
    }
  });
}

t.test('Tab reaches everything that can be used', async (t) => {
  const { page, show } = await explorer.open(t);
  const chart = 'price=nickel/CP-NI-0001&price=nickel/CP-NI-0002';
  for (const view of ['', 'market=nickel', chart, 'calculate=%7B%7D']) {
    await show(view);
    await page.evaluate(`document.body.focus(); globalThis.reached = new Set();
      addEventListener('focusin', ({ target }) => globalThis.reached.add(target));`);
    const kinds = 'a, button, input, select, summary, [tabindex]';
    const usable = `[...document.querySelectorAll('${kinds}')]
      .filter((each) => each.checkVisibility() && each.tabIndex >= 0)`;
    const count = Number(await page.evaluate(`${usable}.length`));
    t.ok(count > 10);
    // A date field takes a stop for each of its parts.
    for (let at = 0; at < count + 20; at += 1) await page.keyboard.press('Tab');
    const missed = await page.evaluate(
      `${usable}.filter((each) => !reached.has(each)).map((each) => each.outerHTML.slice(0, 120))`,
    );
    t.same(missed, [], view);
  }
});

t.test('keys move the cursor of the chart, and each move is announced', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0003&from=2026-04-01');
  const chart = page.locator('.chart');
  await chart.focus();
  const said = (): Promise<string | null> => chart.getAttribute('aria-valuetext');
  const at = async (): Promise<number> => Number(await chart.getAttribute('aria-valuenow'));
  await page.keyboard.press('End');
  const last = await at();
  t.equal(
    await said(),
    '2026-06-30. CP-NI-0001: mid 18800, low 18780, high 18820 USD/t. CP-NI-0003: no price',
  );
  const moves = [
    ['ArrowLeft', last - 1],
    ['PageDown', last - 21],
    ['ArrowRight', last - 20],
    ['PageUp', last],
    ['ArrowDown', last - 1],
    ['ArrowUp', last],
    ['Home', 0],
  ] as const;
  for (const [key, place] of moves) {
    await page.keyboard.press(key);
    t.equal(await at(), place, key);
    t.match(await said(), /^\d{4}-\d\d-\d\d\. CP-NI-0001: .*\. CP-NI-0003: /, key);
  }
  // Good Friday: a working day without a price.
  await show('price=nickel/CP-NI-0001&from=2026-04-01&to=2026-04-08');
  await chart.focus();
  const announced: string[] = [];
  for (const key of ['Home', 'ArrowRight', 'ArrowRight', 'ArrowRight']) {
    await page.keyboard.press(key);
    announced.push((await said()) ?? '');
  }
  t.ok(
    announced.some((each) => /^2026-04-\d\d\. CP-NI-0001: no price$/.test(each)),
    announced.join('; '),
  );
});

t.test('a reader without a mouse finds a price and opens it', async (t) => {
  const visit = await explorer.open(t);
  await signIn(explorer, visit);
  const { page } = visit;
  await page.keyboard.press('/');
  await page.keyboard.type('briquette');
  await page.locator('.results a').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/price=nickel%2FCP-NI-0003/);
});

t.test('Enter opens nothing that was found for other letters', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.keyboard.press('/');
  await page.keyboard.type('CP-NI-000');
  await page.locator('.results a').first().waitFor();
  const { promise: isLet, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/v3/search?*', async (route) => {
    await isLet;
    await route.continue();
  });
  await page.keyboard.type('3');
  await page.keyboard.press('Enter');
  t.notMatch(page.url(), /price=/);
  release();
  await page.locator('.results li:first-child a', { hasText: 'CP-NI-0003' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/price=nickel%2FCP-NI-0003/);
});
