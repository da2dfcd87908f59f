import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { json, scriptedServer } from '../clients/scripted-server.ts';
import { seededDatabase } from '../support/database/database.ts';
import { blockOf, blocksOf, ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { parseCsv } from '../support/prices/csv.ts';
import { type FunctionCall, type ProgramValue, readProgram } from './power-query.ts';

const CODES = ['CP-NI-0001', 'CP-NI-0003'];
const GOOGLE = `${ROOT}test/docs/google-sheets.js`;

const service = await serviceOn(t, await seededDatabase(t), { BASIC_AUTH: 'on' });
const basic = `Basic ${Buffer.from(`anyone:${service.key}`).toString('base64')}`;

const address = await addressOf(service.app);

type RequestOptions = Readonly<Record<string, ProgramValue>>;

/** The request of a call of Web.Contents, with its parameters in order. */
function requestOf({ values: [site, options] }: FunctionCall): {
  url: string;
  options: RequestOptions;
} {
  const { RelativePath: path, Query: query } = options as RequestOptions & {
    Query: RequestOptions;
  };
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, String(each)]),
  );
  const parameters = new URLSearchParams(pairs as [string, string][]);
  const { pathname } = new URL(String(site));
  return {
    url: `${path ? `/${path}` : pathname}?${parameters}`,
    options: options as RequestOptions,
  };
}

const ofExcel = blocksOf('docs/recipes/excel.md').filter(
  ({ language }) => language === 'powerquery',
);
const isPost = ({ text }: { readonly text: string }): boolean => text.includes('Json.FromValue');

const programs = [
  ...ofExcel.filter((each) => !isPost(each)),
  ...blocksOf('docs/formats.md').filter(({ text }) => text.startsWith('= Csv.Document')),
];

t.test('each program of Power Query asks what the service answers', async (t) => {
  t.equal(programs.length, 4);
  for (const { page, text } of programs) {
    const known = { Codes: CODES, Key: service.key };
    const { calls, columns } = await readProgram(text.replace(/^= /, ''), known);
    const asks = calls.filter(({ name }) => name === 'Web.Contents');
    t.equal(asks.length, 1, page);
    const { url, options } = requestOf(asks[0] as FunctionCall);
    const headers = options['Headers'] ? { 'x-api-key': service.key } : { authorization: basic };
    const answer = await service.app.inject({ url, headers });
    t.equal(answer.statusCode, 200, answer.body);
    t.match(answer.headers['content-type'], /^text\/csv/);
    const [header = [], ...rows] = parseCsv(answer.body);
    t.ok(rows.length > 10, url);
    for (const column of columns) t.ok(header.includes(column), `${column} of ${url}`);
    if (text.includes('Table.TransformColumnTypes')) t.ok(columns.includes('date'));
    if (url.includes('layout=wide')) t.same(header, ['date', ...CODES]);
  }
});

t.test('the program of a calculation posts what the service computes', async (t) => {
  const [{ text } = { text: '' }, ...more] = ofExcel.filter(isPost);
  t.equal(more.length, 0);
  const { calls, columns } = await readProgram(text, { Key: service.key });
  const values = (name: string) => calls.find((each) => each.name === name)?.values ?? [];
  const options = values('Web.Contents')[1] as RequestOptions;
  const answer = await service.app.inject({
    method: 'POST',
    url: `/${options['RelativePath']}`,
    headers: options['Headers'] as Record<string, string>,
    payload: JSON.stringify(values('Json.FromValue')[0]),
  });
  t.equal(answer.statusCode, 200, answer.body);
  const [header = [], ...rows] = parseCsv(answer.body);
  t.same(
    rows.map(([anchor]) => anchor?.slice(0, 7)),
    ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06'],
  );
  for (const row of rows) t.match(row[header.indexOf('value')], /^\d+(\.\d+)?$/);
  t.same(columns, ['anchor', 'value']);
  for (const column of columns) t.ok(header.includes(column), column);
});

t.test('the parser of Power Query refuses what is no program', async (t) => {
  await t.rejects(readProgram('let Query = [a = ] in Query'), /Expected to find/);
});

t.test('Power Query can show the reason of a refusal, and asks for a key', async (t) => {
  const refused = await service.app.inject({
    url: '/v3/prices/nickel?regions=Europ&strict=true&format=csv',
    headers: { authorization: basic },
  });
  t.equal(refused.statusCode, 400);
  const { detail, errors } = refused.json();
  t.match(detail, /\w/);
  t.match(errors[0].detail, /"Europ".*did you mean Europe/, 'the reason is there');
  const handling = programs.filter(({ text }) => text.includes('ManualStatusHandling'));
  t.equal(handling.length, 2);
  for (const { text } of handling) t.match(text, /\[errors\]\? \?\? \{\}, each \[detail\]/);
  const bare = await service.app.inject({ url: '/v3/prices/nickel?format=csv' });
  t.equal(bare.statusCode, 401);
  t.match(bare.headers['www-authenticate'], /Basic/);
});

const SCRIPT = blockOf('docs/recipes/google-sheets.md', 'javascript');

/** The sheet after the script ran, and its error. */
async function runScript(
  key: string,
  url = address,
  script = SCRIPT,
): Promise<{ sheet: string[][]; stderr: string }> {
  const env = {
    PATH: process.env['PATH'],
    COMMODITY_PRICES_URL: url,
    COMMODITY_PRICES_KEY: key,
  };
  const words = ['--no-warnings', GOOGLE, script];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, words, { env });
  return { sheet: JSON.parse(stdout), stderr };
}

t.test('the script for Google Sheets fills the sheet with the rows of the service', async (t) => {
  const { text } = await service.request({
    method: 'GET',
    url:
      '/v3/prices/nickel?regions=Europe&regions=Global&dateFrom=2026-06-01' +
      '&includeSeries=true&columns=short&format=csv',
  });
  const { sheet, stderr } = await runScript(service.key);
  t.equal(stderr, '');
  t.same(sheet, parseCsv(text));
  t.ok(sheet.length > 10);
});

t.test('the script for Google Sheets keeps the last prices when it is refused', async (t) => {
  const { sheet, stderr } = await runScript('nonsense');
  t.same(sheet, [['old']]);
  t.match(stderr, /invalid_api_key/);
  const signIn = json('<html>Sign in</html>', { 'content-type': 'text/html' });
  const { url } = await scriptedServer(t, [signIn]);
  const page = await runScript(service.key, url);
  t.same(page.sheet, [['old']], 'also if a page has status 200');
  t.match(page.stderr, /Sign in/);
});

t.test('parameters of the script for Google Sheets replace its defaults', async (t) => {
  const { text } = await service.request({
    method: 'GET',
    url:
      '/v3/prices/nickel?regions=Europe&regions=Global&dateFrom=2026-06-01' +
      '&includeSeries=true&columns=all&format=csv',
  });
  const own = SCRIPT.replace(/(dateFrom: '[^']+')/, "$1, columns: 'all', format: 'json'");
  const { sheet, stderr } = await runScript(service.key, address, own);
  t.equal(stderr, '');
  t.same(sheet, parseCsv(text));
});
