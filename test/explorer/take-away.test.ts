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
import { explorerOn, RECORD_WRITTEN, words } from '../support/process/explorer.ts';

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

/** The shown request, which is beside the programs. */
async function addressShown(page: Page): Promise<string> {
  const code = page.getByRole('button', { name: 'Code', exact: true });
  if ((await code.getAttribute('aria-expanded')) === 'false') await code.click();
  return (await page.locator('.request code').innerText()).replace(/^GET /, '');
}

const csvOf = async (address: string): Promise<Buffer> => {
  const answer = await fetch(address, { headers: { 'x-api-key': explorer.key } });
  return Buffer.from(await answer.arrayBuffer());
};

/** The rows of a CSV without quotes, with their cells. */
const rowsOf = (csv: string): string[][] =>
  csv
    .trimEnd()
    .split('\r\n')
    .map((row) => row.split(','));

t.test('the CSV is the answer to the shown request, byte for byte', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(VIEW);
  for (const form of ['whole', 'short']) {
    await page.getByLabel('Columns').selectOption(form);
    const file = await saved(page, 'CSV');
    t.same(await readFile(await file.path()), await csvOf(await addressShown(page)), form);
    t.equal(file.suggestedFilename(), 'CP-NI-0001_CP-NI-0003.csv');
  }
});

t.test('one CSV has the prices of all markets of a chart', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(`${VIEW}&price=copper/CP-CU-0001`);
  for (const form of ['whole', 'short']) {
    await page.getByLabel('Columns').selectOption(form);
    await addressShown(page);
    const parts: string[] = [];
    for (const market of ['nickel', 'copper']) {
      await page.getByLabel('Request of the market').selectOption(market);
      parts.push((await csvOf(await addressShown(page))).toString());
    }
    const [nickel = '', copper = ''] = parts;
    const file = await readFile(await (await saved(page, 'CSV')).path(), 'utf8');
    t.equal(file, nickel + copper.slice(copper.indexOf('\r\n') + 2), form);
  }
});

t.test('the CSV has no column with one value, beside those that explain the values', async (t) => {
  const { page, show } = await explorer.open(t);
  const named = ['code', 'currency', 'unitOfMeasure', 'name', 'specification'];
  for (const view of [
    'price=nickel/CP-NI-0001&from=2026-05-01',
    'price=nickel/CP-NI-0006&from=2025-01-01',
  ]) {
    await show(view);
    const file = await readFile(await (await saved(page, 'CSV')).path(), 'utf8');
    // Only a name and a specification have commas, in quotes.
    const [heads = [], ...rows] = rowsOf(file.replace(/"[^"]*"/g, 'name'));
    t.ok(rows.length > 5);
    const constant = heads.filter(
      (head, at) => !named.includes(head) && new Set(rows.map((row) => row[at])).size === 1,
    );
    t.same(constant, [], view);
    for (const each of [...named, 'date', 'mid']) t.ok(heads.includes(each), each);
  }
  await show('price=nickel/CP-NI-0001&price=nickel/CP-NI-0003&from=2026-06-01');
  const file = await readFile(await (await saved(page, 'CSV')).path(), 'utf8');
  const [heads = ''] = file.split('\r\n');
  t.match(heads, ',priceCategory', 'what differs between prices is there');
  t.notMatch(heads, 'chemicalCode');
  t.notMatch(heads, 'rateSource');
  await show('price=nickel/CP-NI-0002&from=2026-06-01&currency=EUR');
  const converted = await readFile(await (await saved(page, 'CSV')).path(), 'utf8');
  const [names = '', ...lines] = converted.trimEnd().split('\r\n');
  t.match(names, ',rateSource,specification');
  for (const line of lines) t.match(line, /,SAMPLE,"vat: 13% included; sample data: /);
});

t.test(
  'the wide CSV names currency, unit and sample data of each column, over several markets',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show(
      'price=nickel/CP-NI-0003&price=nickel/CP-NI-0011&price=copper/CP-CU-0001&from=2026-06-01',
    );
    await page.getByLabel('Columns').selectOption('wide');
    const file = await readFile(await (await saved(page, 'CSV')).path(), 'utf8');
    const [heads = [], ...rows] = rowsOf(file);
    t.equal(heads[0], 'date');
    t.equal(heads[1], 'CP-NI-0003 [USD/Tonne] (sample data)');
    t.match(heads[2], /^CP-NI-0011 \[(?!.*\/)/);
    t.match(heads[3], /^CP-CU-0001 \[\w{3}\/\w+/);
    const shown = (await page.evaluate(`[...document.querySelectorAll('.points tbody tr')]
    .map(({ cells }) => [0, 1, 3].map((at) => cells[at].textContent))`)) as string[][];
    const written = rows.flatMap(([date, ...mids]) =>
      mids.flatMap((mid, at) =>
        mid === '' ? [] : [`${date} ${heads[at + 1]?.split(' ')[0]} ${mid}`],
      ),
    );
    t.same(written.sort(), shown.map((cells) => cells.join(' ')).sort());
  },
);

t.test('a workbook is the answer of the service, one for each market', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(`${VIEW}&price=copper/CP-CU-0001`);
  for (const form of ['whole', 'short', 'wide']) {
    await page.getByLabel('Columns').selectOption(form);
    const files: Download[] = [];
    page.on('download', (file) => files.push(file));
    await page.getByRole('button', { name: 'Excel', exact: true }).click();
    await page.getByText('Saved 2 workbooks').waitFor();
    const names = files.map((file) => file.suggestedFilename());
    const shape = form === 'wide' ? '-wide' : '';
    t.same(names, [`CP-NI-0001_CP-NI-0003${shape}.xlsx`, `CP-CU-0001${shape}.xlsx`]);
    page.removeAllListeners('download');
    await addressShown(page);
    for (const [at, market] of ['nickel', 'copper'].entries()) {
      await page.getByLabel('Request of the market').selectOption(market);
      const address = (await addressShown(page)).replace('format=csv', 'format=xlsx');
      const bytes = await readFile(`${await files[at]?.path()}`);
      t.equal(bytes.subarray(0, 2).toString(), 'PK', 'an archive');
      t.ok(bytes.equals(await csvOf(address)), `${form}, ${market}`);
    }
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('Saved 2 workbooks').waitFor({ state: 'detached' });
  }
});

t.test('a CSV with semicolons has decimal commas, in every form', async (t) => {
  const { page, show } = await explorer.open(t);
  await show(VIEW);
  const textOf = async (button: string): Promise<string> => {
    const file = await saved(page, button);
    const mark = button === 'CSV' ? '' : '-semicolons';
    const shape = (await page.getByLabel('Columns').inputValue()) === 'wide' ? '-wide' : '';
    t.equal(file.suggestedFilename(), `CP-NI-0001_CP-NI-0003${shape}${mark}.csv`);
    return readFile(await file.path(), 'utf8');
  };
  for (const form of ['whole', 'short']) {
    await page.getByLabel('Columns').selectOption(form);
    const address = (await addressShown(page)).replace(
      'format=csv',
      'format=csv&csvDialect=semicolon',
    );
    t.equal(await textOf('CSV with semicolons'), (await csvOf(address)).toString(), form);
  }
  await page.getByLabel('Columns').selectOption('wide');
  const plain = await textOf('CSV');
  t.match(plain, /,\d+\.\d+/);
  t.equal(
    await textOf('CSV with semicolons'),
    `\ufeff${plain.replaceAll(',', ';').replace(/(?<=;\d+)\.(?=\d)/g, ',')}`,
  );
});

t.test('the shown request has the numbers of the table', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&from=2026-06-01');
  const csv = (await csvOf(await addressShown(page))).toString();
  const rows = rowsOf(csv)
    .slice(1)
    .map((row) => row.slice(1, 5).join(' '));
  const shown = await page.evaluate(`[...document.querySelectorAll('.points tbody tr')]
    .map(({ cells }) => [...cells].slice(0, 4).map(({ textContent }) => textContent).join(' '))`);
  t.same(shown, rows.reverse());
});

const RECIPES = new URL('../../src/explorer/take-away/recipes.js', import.meta.url).href;

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
  const points = rows.filter((row) => !row.startsWith('CP-NI-0006,,')).map((row) => row.split(','));
  t.ok(points.length >= 6);
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
    const lines = stdout.split('\n').filter((line) => line.includes('CP-NI-0001'));
    t.equal(lines.length, points.length, name);
    for (const [code, date, low, mid, high] of points) {
      const line = lines.find((each) => each.includes(`${date}`)) ?? '';
      for (const text of [code, low, mid, high]) t.match(line, text, `${name}: ${date}`);
    }
    t.notMatch(stdout, 'CP-NI-0006', `${name}: no row without a date`);
  }
  t.match(await readFile(join(folder, 'prices.csv'), 'utf8'), /^code,date,low,mid,high,currency/);
});

t.test('each program prints the reason of a refusal and fails', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&from=2026-06-02&to=2026-06-12');
  await page.getByRole('button', { name: 'Code', exact: true }).click();
  const folder = t.testdir({});
  for (const [name, file, program] of RUNS) {
    if (programOnPath([program]) === null && program === 'Rscript') continue;
    await page.getByRole('button', { name, exact: true }).click();
    await writeFile(join(folder, file), (await page.locator('pre code').textContent()) ?? '');
    const env = { PATH: process.env['PATH'], COMMODITY_PRICES_KEY: 'cps_live_nonsense' };
    const failed = await run(program, [file], { cwd: folder, env }).then(
      () => null,
      (error: { stderr: string }) => error.stderr,
    );
    const answer = await fetch(`${explorer.address}/v3/me`, {
      headers: { 'x-api-key': 'cps_live_nonsense' },
    });
    t.match(failed, ((await answer.json()) as { detail: string }).detail, name);
  }
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
    if (programOnPath([program]) === null && program === 'Rscript') continue;
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
  t.match(programs['power-query'], '{"mid", type number}');
  t.match(programs['power-query'], '"en-US"', 'a decimal comma of the computer changes no number');
  t.match(programs['power-query'], 'Json.Document(Answer)[detail]');
});

t.test(
  'the picture of the chart says what the page says, on white, at twice the size',
  async (t) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, show } = await explorer.open(t, { colorScheme });
      await show('price=nickel/CP-NI-0002&price=nickel/CP-NI-0003&currency=EUR&from=2026-01-01');
      await page.evaluate(RECORD_WRITTEN);
      const file = await saved(page, 'PNG of the chart');
      t.equal(file.suggestedFilename(), 'CP-NI-0002_CP-NI-0003.png');
      const bytes = await readFile(await file.path());
      t.equal(bytes.subarray(1, 4).toString(), 'PNG');
      t.equal(bytes.readUInt32BE(16), 2 * (1_000 + 2 * 20), 'its width');
      const texts = String(await page.evaluate('written.join(" ")'));
      const names = await page.locator('.readout th bdi').allInnerTexts();
      t.equal(names.length, 2);
      for (const name of names) t.match(texts, `: ${name}, EUR/t`, 'the whole name with its unit');
      t.match(texts, 'VAT 13% included');
      t.match(texts, 'exchange rates: SAMPLE');
      t.match(texts, 'in EUR');
      t.match(texts, 'premium');
      const corner = (await page.evaluate(
        `(async (base64) => {
        const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        const pen = canvas.getContext('2d');
        pen.drawImage(bitmap, 0, 0);
        return [...pen.getImageData(3, 3, 1, 1).data];
      })('${bytes.toString('base64')}')`,
      )) as number[];
      t.same(corner, [255, 255, 255, 255], `${colorScheme}: white`);
    }
  },
);

t.test('the picture of a chart of several markets names their revision once', async (t) => {
  const { page, show } = await explorer.open(t);
  await show('price=nickel/CP-NI-0001&price=copper/CP-CU-0001&from=2026-06-01');
  await page.evaluate(RECORD_WRITTEN);
  await saved(page, 'PNG of the chart');
  const texts = String(await page.evaluate('written.join(" ")'));
  t.match(texts, /Commodity Prices Service, \S+, revision \S+ Drawn /);
});

t.test(
  'a citation has name, code, revision, date, source and a link to the same numbers',
  async (t) => {
    const { page, show } = await explorer.open(t);
    await show('code=CP-NI-0003&market=nickel');
    const text = await page.locator('.cite').innerText();
    const name = await page.locator('h1 bdi').innerText();
    const answer = await fetch(
      `${explorer.address}/v3/prices/nickel?codes=CP-NI-0003&includeSeries=true`,
      {
        headers: { 'x-api-key': explorer.key },
      },
    );
    // biome-ignore lint/suspicious/noExplicitAny: an answer that other tests check
    const { $metadata, data } = (await answer.json()) as any;
    t.match(text, `${name} (CP-NI-0003)`);
    const { mid } = data[0].series.at(-1);
    t.match(text, `; ${mid} USD/t on ${data[0].lastAssessedAt}; sample data; revision `);
    t.match(text, `revision ${$metadata.revision}`);
    t.match(text, 'Commodity Prices Service');
    const [link = ''] = /https?:\S+$/.exec(text) ?? [];
    const parts = new URLSearchParams(new URL(link).hash.slice(1));
    t.equal(parts.get('asOf'), $metadata.asOf);
    t.equal(parts.get('code'), 'CP-NI-0003');
    await page.getByRole('button', { name: 'Copy citation' }).click();
    await page.getByText('Copied').waitFor();
    await show(VIEW);
    await page.evaluate(
      'navigator.clipboard.writeText = async (text) => { globalThis.text = text; }',
    );
    await page.getByRole('button', { name: 'Copy citation' }).click();
    await page.getByText('Copied').waitFor();
    const lines = String(await page.evaluate('globalThis.text')).split('\n');
    t.equal(lines.length, 2, 'one line for each price of a chart');
    t.match(lines[1], 'CP-NI-0003');
  },
);

t.test('the link of a citation opens the numbers that the citation has', async (t) => {
  const { page, show } = await explorer.open(t);
  const cited = async (): Promise<string> => {
    await page.evaluate(
      'navigator.clipboard.writeText = async (text) => { globalThis.text = text; }',
    );
    await page.getByRole('button', { name: 'Copy citation' }).click();
    await page.getByText('Copied').waitFor();
    return String(await page.evaluate('globalThis.text'));
  };
  const price = 'price=nickel/CP-NI-0003&to=2024-06-15';
  for (const [options, unit, time] of [
    ['', 'USD/t', / on 2024-06-1\d;/],
    ['&currency=EUR&unit=lb', 'EUR/lb', / on 2024-06-1\d;/],
    ['&average=month&to=2024-05-31', 'USD/t', /, mean of May 2024;/],
    ['&average=year', 'USD/t', /, mean of 2024;/],
    ['&currency=EUR&average=week', 'EUR/t', /, mean of the week from 2024-06-10;/],
  ] as const) {
    const to = options.includes('to=') ? 'price=nickel/CP-NI-0003' : price;
    await show(`${to}${options}`);
    const shown = words(await page.locator('.readout .strong').innerText()).replace(/\s/g, '');
    const text = await cited();
    t.match(text, `; ${shown} ${unit}`, options);
    t.match(text, time, options);
    t.equal(text.includes(`(CP-NI-0003) in ${unit};`), options.includes('currency'), 'converted');
    t.equal(text.includes('; sample exchange rates;'), options.includes('currency'));
    const [link = ''] = /#\S+$/.exec(text) ?? [];
    await show(link.slice(1));
    const opened = page.locator('.readout .strong').first();
    t.equal(words(await opened.innerText()).replace(/\s/g, ''), shown, `the link of ${options}`);
    t.equal(words(await page.locator('.readout tbody .unit').first().innerText()), unit);
  }
  await show('code=CP-NI-0003&market=nickel&currency=EUR&average=month');
  const text = await page.locator('.cite').innerText();
  t.match(text, /\d USD\/t on \d{4}-\d\d-\d\d;/);
  t.notMatch(text, 'currency=EUR', 'a record cites the numbers that it shows');
});
