import type { FastifyInstance } from 'fastify';
import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { EDITION } from '../../src/http/reply/page.ts';
import { seededDatabase } from '../support/database/database.ts';
import { testConfig } from '../support/http/test-config.ts';
import { explorerOn, settled } from '../support/process/explorer.ts';

const database = await seededDatabase(t);
const explorer = await explorerOn(t, database);

/** The address of a service that stops and starts again. */
const PORT = 40_000 + (process.pid % 20_000);
const ADDRESS = `http://127.0.0.1:${PORT}`;

let service: FastifyInstance | null = null;

async function start(): Promise<void> {
  service = await buildApp({ config: testConfig(), client: database.client });
  await service.listen({ port: PORT, host: '127.0.0.1' });
}

const stop = async (): Promise<void> => void (await service?.close());

t.teardown(stop);

const VIEWS = {
  '': '.overview .spark path',
  'market=nickel': '.list tr:has-text("CP-NI-0001")',
  'price=nickel/CP-NI-0001': '.points tbody tr',
  'code=CP-NI-0001': '.corrections tbody tr',
};

t.test(
  'after a restart of the service a view that was chosen meanwhile loads by itself',
  async (t) => {
    await start();
    const { page } = await explorer.open(t);
    for (const [view, content] of Object.entries(VIEWS)) {
      await page.goto('about:blank');
      await page.goto(`${ADDRESS}/explorer#key=${explorer.key}&market=copper`);
      await settled(page);
      await stop();
      await page.evaluate(`location.hash = '${view}'`);
      await page
        .getByRole('alert')
        .filter({ hasText: /cannot be reached|is away/ })
        .waitFor();
      t.equal(await page.locator(content).count(), 0);
      await start();
      await page.locator(content).first().waitFor();
      await settled(page);
      t.equal(await page.getByRole('alert').count(), 0, view || 'overview');
    }
  },
);

t.test('a key that is entered while the service is away opens the page later', async (t) => {
  const { page } = await explorer.open(t);
  await page.goto(`${explorer.address}/explorer`);
  await page.route('**/v3/**', (route) => route.abort());
  await page.getByLabel('API key').fill(explorer.key);
  await page.getByRole('button', { name: 'Show prices' }).click();
  await page.getByText('The service cannot be reached').waitFor();
  await page.getByText('The page asks again by itself').waitFor();
  await page.unrouteAll();
  await page.getByRole('link', { name: 'Nickel', exact: true }).waitFor();
});

t.test('a view and its lists load after several 503 with Retry-After', async (t) => {
  const { page, show } = await explorer.open(t);
  let refused = 0;
  await page.route(/v3\/(prices\/nickel|reference)/, async (route) => {
    refused += 1;
    if (refused > 7) return route.fallback();
    const problem = { status: 503, code: 'database_unavailable', title: 'Away', detail: 'Wait' };
    return route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      headers: { 'retry-after': '1' },
      body: JSON.stringify(problem),
    });
  });
  await show('price=nickel/CP-NI-0001');
  await page.locator('.points tbody tr').first().waitFor();
  await page.getByLabel('Currency').locator('option[value="EUR"]').waitFor({ state: 'attached' });
  await page.getByText('database_unavailable').waitFor({ state: 'detached' });
  t.ok(refused > 7);
});

t.test('one request at a time looks whether the service is back, for all markets', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  const markets = await page.locator('.overview tbody tr').count();
  // The filters of a market are the last of its view. Their request would count as a market's.
  const filters = page.waitForResponse((response) => response.url().includes('format=rows'));
  await show('market=nickel');
  await filters;
  const addresses: string[] = [];
  const { promise: areSent, resolve: send } = Promise.withResolvers<void>();
  await page.route('**/v3/**', (route) => {
    addresses.push(new URL(route.request().url()).pathname);
    if (addresses.length === markets + 3) send();
    return route.abort();
  });
  await page.evaluate(`location.hash = ''`);
  await areSent;
  const probed = addresses.slice(markets);
  t.equal(new Set(addresses.slice(0, markets)).size, markets, 'all markets failed first');
  t.equal(new Set(probed).size, 3, `each time another one: ${probed}`);
  await page.unrouteAll();
  await page.getByText('cannot be reached').waitFor({ state: 'detached' });
  await settled(page);
  t.equal(await page.locator('.overview .spark path').count(), markets);
});

t.test('waits before a retry double up to a minute, with jitter, sixty times', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  await page.evaluate(`import('/explorer/${EDITION}/recovery.js').then(({ Recovery }) => {
    globalThis.retries = [0, 0, 600].map((retryAfter) => {
      const recovery = new Recovery(() => {});
      const at = [Date.now()];
      const part = {
        reload: async () => {
          at.push(Date.now());
          recovery.add(part);
        },
      };
      recovery.add(part, retryAfter);
      return at;
    });
  })`);
  await page.clock.runFor(3 * 3_600_000);
  const runs = (await page.evaluate('retries')) as number[][];
  const [first = [], second = [], later = []] = runs.map((at) =>
    at.slice(1).map((each, index) => (each - Number(at[index])) / 1_000),
  );
  t.equal(first.length, 60);
  for (const [index, wait] of first.entries()) {
    const longest = Math.min(60, 2 ** index);
    if (wait < longest / 2 - 0.001 || wait > longest + 0.001) t.fail(`wait ${index}: ${wait} s`);
  }
  t.notSame(first, second, 'two pages do not retry at the same times');
  t.ok(Number(later[0]) >= 600, 'Retry-After');
  await page.evaluate('dispatchEvent(new Event("online"))');
  const again = (await page.evaluate('retries.map(({ length }) => length)')) as number[];
  t.same(again, [62, 62, 62], 'a network that is back');
});

t.test('a search says that the service is away, and finds when it is back', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('');
  await page.route('**/v3/search?*', (route) => route.abort());
  await page.keyboard.press('/');
  await page.keyboard.type('CP-NI-0003');
  const results = page.locator('.results');
  await results.getByText('The service cannot be reached.').waitFor();
  t.equal(await page.getByText('Nothing matches').count(), 0);
  t.equal(await page.getByText('0 results').count(), 0);
  await page.unrouteAll();
  await results.locator('a', { hasText: 'CP-NI-0003' }).waitFor();
  t.equal(await page.getByText('cannot be reached').count(), 0);
  await page.route('**/v3/search?*', (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      headers: { 'retry-after': '0' },
      body: JSON.stringify({ status: 503, code: 'overloaded', detail: 'Too many requests run' }),
    }),
  );
  await page.getByRole('searchbox').fill('CP-NI-0011');
  await results.getByText('Too many requests run.').waitFor();
  await page.unrouteAll();
  await results.locator('a', { hasText: 'CP-NI-0011' }).waitFor();
});

t.test('the search works again after its code could not be loaded', async (t) => {
  const { page, show } = await explorer.open(t);
  await page.route('**/results.js', (route) => route.abort());
  // The overview loads that code too.
  await show('price=nickel/CP-NI-0001');
  await page.keyboard.press('/');
  await page.keyboard.type('CP-NI-0003');
  await page.locator('.results').getByText('The service cannot be reached.').waitFor();
  await page.unrouteAll();
  await page.locator('.results a', { hasText: 'CP-NI-0003' }).waitFor();
});
