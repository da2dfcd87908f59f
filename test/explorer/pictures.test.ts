import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { explorerOn, keepPicture, settled } from '../support/process/explorer.ts';
import { walk } from '../support/process/explorer-walk.ts';

const explorer = await explorerOn(t, await seededDatabase(t));

const SCREENS = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
} as const;

for (const [screen, options] of Object.entries(SCREENS)) {
  t.test(
    `no view is wider than its screen, and a picture of each is kept, ${screen}`,
    async (t) => {
      const visit = await explorer.open(t, options);
      await walk(explorer, visit, async (name, page) => {
        await keepPicture(page, `${screen}-${name}`);
        const width = await page.evaluate('document.documentElement.scrollWidth');
        t.ok(Number(width) <= options.viewport.width, `${name}: ${width} px`);
      });
      const { page, show } = visit;
      await show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0000&currency=QQQ&market=gold');
      await keepPicture(page, `${screen}-ignored`);
      await page.goto(`${explorer.address}/docs/problems`);
      await keepPicture(page, `${screen}-problems`, false);
      await page.goto(`${explorer.address}/docs`, { waitUntil: 'networkidle' });
      const badge = page.locator('pre.version').first();
      const background = 'getComputedStyle(document.querySelector("pre.version")).backgroundColor';
      await badge.waitFor();
      t.equal(await page.evaluate(background), 'rgba(0, 0, 0, 0)', 'the version is readable');
      await keepPicture(page, `${screen}-docs`, false);
      await page.goto(`${explorer.address}/explorer#key=nonsense`);
      await page.getByRole('alert').waitFor();
      await keepPicture(page, `${screen}-error`);
    },
  );
}

t.test('twenty lines are labelled at their ends', async (t) => {
  const { page, show } = await explorer.open(t);
  const codes = Array.from(
    { length: 18 },
    (_, at) => `nickel/CP-NI-${String(at + 1).padStart(4, '0')}`,
  );
  const all = [...codes, 'copper/CP-CU-0001', 'aluminium/CP-AL-0001'];
  await show(`${all.map((code) => `price=${code}`).join('&')}&index=1&from=2026-01-01&bands=0`);
  await settled(page);
  await keepPicture(page, 'light-twenty');
  t.equal(await page.locator('.readout tbody tr').count(), 20);
});
