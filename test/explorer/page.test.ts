import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { EDITION, PAGE_FILES } from '../../src/http/reply/page.ts';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { explorerOn } from '../support/process/explorer.ts';
import { signIn, walk } from '../support/process/explorer-walk.ts';

const BYTES_MAX = 65_536;
const FIRST_CHART_MS = 400;
const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
const SOURCE = fileURLToPath(new URL('../../src/explorer/', import.meta.url));

const database = await seededDatabase(t);
const explorer = await explorerOn(t, database);

/** A calculation with a chart and a receipt. */
const SERIES = JSON.stringify({
  formula: 'payable * nickel',
  inputs: {
    payable: { code: 'CP-RC-0001', period: 'S' },
    nickel: { code: 'CP-NI-0001', period: 'M-1' },
  },
  anchor: { from: '2026-01', to: '2026-06', every: 'month' },
});

/** The transferred body bytes of all requests of a page. */
const SENT = `[...performance.getEntriesByType('navigation'),
  ...performance.getEntriesByType('resource')]
  .filter(({ name }) => !name.includes('/v3/'))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`;

t.test('a view and all its files are at most 64 KB on the way', async (t) => {
  for (const view of [
    '',
    'market=nickel',
    'price=nickel/CP-NI-0001',
    'code=CP-NI-0003&market=nickel',
    'corrections=week',
    'calculate=%7B%7D',
    `calculate=${encodeURIComponent(SERIES)}`,
  ]) {
    const { page, show } = await explorer.open(t);
    await page.setExtraHTTPHeaders({ 'accept-encoding': 'gzip' });
    await show(view);
    await page.waitForLoadState('networkidle');
    const bytes = Number(await page.evaluate(SENT));
    t.comment(`${view || 'overview'}: ${bytes} bytes as gzip`);
    t.ok(bytes > 20_000);
    t.ok(bytes <= BYTES_MAX, `${view}: ${bytes} bytes`);
  }
});

/** Compiles modules: without comments, and each statement in the way of the compiler. */
const compile = (from: string, to: string, names: readonly string[]): Promise<unknown> =>
  promisify(execFile)(
    // The loaders of tap, which every Node process inherits, cannot load the compiler.
    'env',
    [
      ...['-u', 'NODE_OPTIONS', process.execPath],
      TSC,
      ...['--ignoreConfig', '--allowJs', '--noCheck', '--noResolve', '--removeComments'],
      ...['--target', 'esnext', '--module', 'esnext', '--rootDir', from, '--outDir', to],
      ...names.map((name) => join(from, name)),
    ],
    { cwd: to },
  );

/** A program without the indentation of its lines, which templates of htm lack when served. */
const unindented = (text = ''): string => text.replace(/\n[ \t]+/g, '\n');

t.test('the files are served without comments, and are the same programs', async (t) => {
  const { app } = await serviceOn(t, database);
  const names = PAGE_FILES.map(({ name }) => name).filter((name) => /^(?!vendor).*js$/.test(name));
  t.ok(names.length > 20);
  const folder = t.testdir({
    served: { views: { calculate: {}, corrections: {} }, 'take-away': {} },
    ours: {},
    theirs: {},
  });
  const served = join(folder, 'served');
  const ours = join(folder, 'ours');
  const theirs = join(folder, 'theirs');
  for (const name of names) {
    const { body } = await app.inject(`/explorer/${EDITION}/${name}`);
    t.notMatch(body, /^ *\/\*/m, name);
    await writeFile(join(served, name), body);
  }
  await compile(SOURCE, ours, names);
  await compile(served, theirs, names);
  for (const name of names) {
    const [expected, found] = await Promise.all(
      [ours, theirs].map((each) => readFile(join(each, name), 'utf8')),
    );
    t.ok(expected);
    t.equal(unindented(found), unindented(expected), name);
  }
});

t.test('the first chart is on the screen 400 ms after the key is entered', async (t) => {
  const visit = await explorer.open(t);
  await signIn(explorer, visit);
  const { page } = visit;
  await page.getByRole('button', { name: 'Forget key' }).click();
  await page.getByLabel('API key').fill(explorer.key);
  const took = await page.evaluate(`new Promise((done) => {
    const begin = performance.now();
    document.querySelector('form button').click();
    const look = () => document.querySelector('.spark path')
      ? requestAnimationFrame(() => done(performance.now() - begin))
      : requestAnimationFrame(look);
    look();
  })`);
  t.comment(`${Math.round(Number(took))} ms`);
  // A machine that runs other tests is slower than a reader's.
  t.ok(Number(took) <= 3 * FIRST_CHART_MS, `${took} ms`);
});

t.test('a full walk violates no rule of the policy and requests no other server', async (t) => {
  const visit = await explorer.open(t);
  const answer = await fetch(`${explorer.address}/explorer`);
  t.equal(
    answer.headers.get('content-security-policy'),
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
      "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
      "require-trusted-types-for 'script'",
  );
  const stops: string[] = [];
  await walk(explorer, visit, async (name) => {
    stops.push(name);
  });
  t.ok(stops.length >= 10);
  t.same(visit.faults, []);
  const others = visit.requests
    .map((request) => request.url())
    .filter((url) => !url.startsWith(`${explorer.address}/`) && !url.startsWith('blob:'));
  t.same(others, []);
});

t.test('after a full walk the key is in nothing but headers', async (t) => {
  const visit = await explorer.open(t);
  const { page, requests } = visit;
  await walk(explorer, visit, async (name) => {
    const { key } = explorer;
    t.notOk((await page.content()).includes(key), `${name}: the document`);
    const kept = await page.evaluate(`JSON.stringify([
      { ...localStorage }, { ...sessionStorage }, document.cookie, location.href,
      [...document.querySelectorAll('input')].map(({ value }) => value),
    ])`);
    t.notOk(String(kept).includes(key), `${name}: storage, cookies, address, fields`);
  });
  t.ok(requests.length > 20);
  t.notOk(
    requests.some((request) => request.url().includes(explorer.key)),
    'addresses',
  );
  t.same(await page.context().cookies(), []);
  const session = await page.context().newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  t.notOk(
    entries.some(({ url, title }) => (url + title).includes(explorer.key)),
    'history',
  );
});

t.test('a key behind # is taken out of the address at once', async (t) => {
  const { page } = await explorer.open(t);
  await page.goto(`${explorer.address}/#key=${explorer.key}`);
  await page.getByRole('link', { name: 'Nickel', exact: true }).waitFor();
  t.equal(page.url(), `${explorer.address}/explorer`, 'the bare address leads to the page');
  const session = await page.context().newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  t.notOk(
    entries.some(({ url, title }) => (url + title).includes(explorer.key)),
    'history',
  );
});

t.test('a key is remembered only in its tab, only if that was asked for', async (t) => {
  const { page } = await explorer.open(t);
  await page.goto(`${explorer.address}/explorer`);
  await page.getByLabel('API key').fill(explorer.key);
  await page.getByLabel('Remember in this tab').check();
  await page.getByRole('button', { name: 'Show prices' }).click();
  await page.getByRole('link', { name: 'Nickel', exact: true }).waitFor();
  await page.reload();
  await page.getByRole('link', { name: 'Nickel', exact: true }).waitFor();
  t.equal(await page.evaluate('localStorage.length'), 0);
  const other = await page.context().newPage();
  await other.goto(`${explorer.address}/explorer`);
  await other.getByLabel('API key').waitFor();
  await page.getByRole('button', { name: 'Forget key' }).click();
  await page.getByLabel('API key').waitFor();
  t.equal(await page.evaluate('sessionStorage.length'), 0);
  await page.reload();
  await page.getByLabel('API key').waitFor();
});

t.test(
  'a service that is away forgets no key, and another key replaces the one kept',
  async (t) => {
    const { page } = await explorer.open(t);
    await page.goto(`${explorer.address}/explorer`);
    const enter = async (): Promise<void> => {
      await page.getByLabel('API key').fill(explorer.key);
      await page.getByRole('button', { name: 'Show prices' }).click();
    };
    const nickel = page.getByRole('link', { name: 'Nickel', exact: true });
    await page.getByLabel('Remember in this tab').check();
    await enter();
    await nickel.waitFor();
    await page.route('**/v3/prices', (route) => route.abort());
    await page.reload();
    await page.getByText('The service cannot be reached').waitFor();
    t.equal(
      await page.evaluate('sessionStorage.length'),
      1,
      'the key is kept while the service is away',
    );
    await enter();
    t.equal(
      await page.evaluate('sessionStorage.length'),
      0,
      'the one that is not to be kept is not',
    );
    await page.unrouteAll();
    await nickel.waitFor();
  },
);

t.test('a browser that forbids storage opens the page all the same', async (t) => {
  const { page, show, faults } = await explorer.open(t);
  await page.addInitScript(`Object.defineProperty(window, 'sessionStorage', {
    get() { throw new DOMException('forbidden', 'SecurityError'); } })`);
  await show('price=nickel/CP-NI-0001');
  t.ok(await page.locator('.points tbody tr').count());
  t.same(faults, []);
});

t.test('the files of the page come, however many anonymous clients request pages', async (t) => {
  const { app } = await serviceOn(t, database, { OPEN_PER_SECOND: 1, OPEN_WAITING_MAX: 0 });
  const page = await app.inject('/explorer');
  t.equal(page.statusCode, 200);
  t.equal((await app.inject('/explorer')).statusCode, 503, 'the page itself waits its turn');
  const files = [...page.body.matchAll(/(?:href|src)="(explorer\/[^"]+)"/g)];
  t.ok(files.length > 10);
  for (const [, file = ''] of files) t.equal((await app.inject(`/${file}`)).statusCode, 200, file);
});

t.test('an address that is no file of the page is a 404, whatever it names', async (t) => {
  const { body } = await (await serviceOn(t, database)).app.inject('/explorer');
  const [folder = ''] = /explorer\/[0-9a-f]{12}/.exec(body) ?? [];
  const { app } = await serviceOn(t, database);
  for (const path of ['nothing.js', '../main.js', '%2e%2e/routes/explorer.ts', 'main.js/', '']) {
    t.equal((await app.inject(`/${folder}/${path}`)).statusCode, 404, path);
  }
  const file = await app.inject(`/${folder}/main.js`);
  t.equal(file.headers['cache-control'], 'public, max-age=31536000, immutable');
});
