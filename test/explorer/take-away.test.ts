import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Download, Page } from 'playwright-core';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { programOnPath } from '../support/process/browser.ts';
import { explorerOn } from '../support/process/explorer.ts';

const explorer = await explorerOn(t, await seededDatabase(t));
const run = promisify(execFile);

const VIEW =
  'price=nickel/CP-NI-0001&price=nickel/CP-NI-0003&from=2026-01-01&currency=EUR&average=month';

async function saved(page: Page, button: string): Promise<Download> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button, exact: true }).click(),
  ]);
  return file;
}

const addressShown = async (page: Page): Promise<string> =>
  (await page.locator('.request code').innerText()).replace(/^GET /, '');

const csvOf = async (address: string): Promise<Buffer> => {
  const answer = await fetch(address, { headers: { 'x-api-key': explorer.key } });
  return Buffer.from(await answer.arrayBuffer());
};

t.test('the CSV is the answer to the shown request, byte for byte', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(`${VIEW}&price=copper/CP-CU-0001`);
  for (const market of ['nickel', 'copper']) {
    await page.getByLabel('Market').selectOption(market);
    const file = await saved(page, 'CSV');
    t.match(await addressShown(page), `/v3/prices/${market}?`);
    t.same(await readFile(await file.path()), await csvOf(await addressShown(page)), market);
    t.match(file.suggestedFilename(), /\.csv$/);
  }
});

t.test('the shown request has the numbers of the table', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&from=2026-06-01');
  const csv = (await csvOf(await addressShown(page))).toString();
  const rows = csv
    .trim()
    .split('\r\n')
    .slice(1)
    .map((row) => row.split(',').slice(1, 5).join(' '));
  const shown = await page.evaluate(`[...document.querySelectorAll('.points tbody tr')]
    .map(({ cells }) => [...cells].slice(0, 4).map(({ textContent }) => textContent).join(' '))`);
  t.same(shown, rows.reverse());
});

const RECIPES = new URL('../../src/explorer/recipes.js', import.meta.url).href;

/** The command of each program, which runs as it was copied, with the key in the environment. */
const RUNS = [
  ['curl', 'recipe.sh', 'bash'],
  ['Python', 'recipe.py', 'python3'],
  ['R', 'recipe.R', 'Rscript'],
  ['TypeScript', 'recipe.mts', process.execPath],
] as const;

t.test('each program runs as copied and gives the points of the request', async (t) => {
  const { page, show } = await explorer.open(t);
  // The second price is monthly: it has no points on these days, and a row without a date.
  await show(
    'price=nickel/CP-NI-0001&price=nickel/CP-NI-0006&from=2026-06-02&to=2026-06-12&currency=EUR',
  );
  await page.getByRole('button', { name: 'Code', exact: true }).click();
  const csv = await csvOf(await addressShown(page));
  const rows = csv.toString().trim().split('\r\n').slice(1);
  t.equal(rows.filter((row) => row.startsWith('CP-NI-0006,,')).length, 1);
  const points = rows.length - 1;
  t.ok(points >= 6);
  const folder = t.testdir({});
  for (const [name, file, program] of RUNS) {
    // `npm test` says in its first line that R is missing; `.ci/run` installs it.
    if (programOnPath([program]) === null && program === 'Rscript') continue;
    await page.getByRole('button', { name, exact: true }).click();
    const text = await page.locator('pre code').textContent();
    t.notOk(text?.includes(explorer.key), `${name}: a placeholder stands for the key`);
    await writeFile(join(folder, file), text ?? '');
    const env = { PATH: process.env['PATH'], COMMODITY_PRICES_KEY: explorer.key };
    const { stdout } = await run(program, [file], { cwd: folder, env });
    t.equal(Number.parseInt(stdout, 10), points, name);
  }
  t.same(await readFile(join(folder, 'prices.csv')), csv, 'the file of curl');
});

t.test('no program takes the key along to the target of a redirect', async (t) => {
  const { recipesOf } = await import(RECIPES);
  const serve = async (answer: RequestListener): Promise<string> => {
    const server = createServer(answer).listen(0, '127.0.0.1');
    t.teardown(() => server.close());
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };
  let keys = 0;
  const target = await serve(({ headers }, reply) => {
    if (headers['x-api-key'] !== undefined) keys += 1;
    reply.end('code\r\n');
  });
  const address = await serve((_request, reply) => {
    reply.writeHead(302, { location: target }).end();
  });
  const folder = t.testdir({});
  for (const [name, file, program] of RUNS) {
    // R has no setting for it; its program says so.
    if (name === 'R') continue;
    const { text } = recipesOf(address, address).find(
      (each: { name: string }) => each.name === name,
    );
    await writeFile(join(folder, file), text);
    const env = { PATH: process.env['PATH'], COMMODITY_PRICES_KEY: 'a-key' };
    await t.rejects(run(program, [file], { cwd: folder, env }), name);
  }
  t.equal(keys, 0);
});

t.test('the program for Power Query has the parts of the request', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(VIEW);
  await page.getByRole('button', { name: 'Code', exact: true }).click();
  await page.getByRole('button', { name: 'Excel (Power Query)' }).click();
  const text = (await page.locator('pre code').textContent()) ?? '';
  t.match(text, `Web.Contents("${explorer.address}"`);
  t.match(text, 'codes = {"CP-NI-0001", "CP-NI-0003"}');
  t.match(text, 'aggregate = "month:average"');
  t.match(text, '[#"x-api-key" = "put your key here"]');
});

t.test('programs hold any code, and lose no digit', async (t) => {
  const { recipesOf } = await import(RECIPES);
  const url = 'http://localhost/v3/prices/nickel?codes=%23(lf)';
  const programs = Object.fromEntries(
    recipesOf(url, url).map(({ id, text }: { id: string; text: string }) => [id, text]),
  );
  t.match(programs['power-query'], 'codes = "#(#)(lf)"');
  t.match(programs['typescript'], 'context.source');
  t.match(programs['r'], 'na.strings = character(0)');
  t.match(programs['curl'], '--fail-with-body');
});

t.test('the picture of the chart is a PNG', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(VIEW);
  const file = await saved(page, 'PNG of the chart');
  const bytes = await readFile(await file.path());
  t.equal(bytes.subarray(1, 4).toString(), 'PNG');
  t.ok(bytes.readUInt32BE(16) > 1_000, 'its width');
  t.match(file.suggestedFilename(), /\.png$/);
});
