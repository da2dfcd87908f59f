import { execFile, execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { makeFolder } from '../support/run/folders.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

const blocks: readonly Block[] = ['README.md', ...globSync('docs/recipes/*.md', { cwd: ROOT })]
  .sort()
  .flatMap((page) =>
    [...readFileSync(`${ROOT}${page}`, 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(
      ([, language = '', text = '']) => ({ page, language, text }),
    ),
  )
  // The others of the README start and set up the service.
  .filter(({ page, language }) => page !== 'README.md' || language === 'ts');

/** How the blocks of a language are run. */
const RUNNERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  sh: ['bash', '-euo', 'pipefail', '-c'],
  python: ['python3', '-W', 'error', '-c'],
  r: ['Rscript', '--vanilla', '-e'],
  ts: [process.execPath, '--input-type=module-typescript', '--eval'],
};

const isThere = (command: string, ...words: string[]): boolean => {
  try {
    execFileSync(command, words, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
const hasPandas = isThere('python3', '-c', 'import pandas');
const hasR = isThere('Rscript', '--version');

/** Why a block cannot be run on this machine; null where it can. */
function missingFor({ language, text }: Block): string | null {
  if (language === 'r' && !hasR) return 'R';
  return language === 'python' && /pandas/.test(text) && !hasPandas ? 'pandas' : null;
}

const database = await testDatabase(t, { seeded: true });
const service = await serviceOn(t, database);
const url = await addressOf(service.app);
const folder = await makeFolder();
t.teardown(folder.remove);
// As npm installs a folder.
mkdirSync(`${folder.path}/node_modules`);
symlinkSync(`${ROOT}clients/typescript`, `${folder.path}/node_modules/commodity-prices-client`);

const run = ({ language, text }: Block): Promise<{ stdout: string; failure: string | null }> =>
  new Promise((resolve) => {
    const [command = '', ...words] = RUNNERS[language] ?? [];
    const env = {
      PATH: process.env['PATH'] ?? '',
      PYTHONPATH: `${ROOT}clients/python`,
      PYTHONDONTWRITEBYTECODE: '1',
      LANG: 'C.UTF-8',
      COMMODITY_PRICES_URL: url,
      COMMODITY_PRICES_KEY: service.key,
    };
    const options = { cwd: folder.path, env, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(command, [...words, text], options, (error, stdout, stderr) => {
      resolve({ stdout, failure: error === null ? null : `${stderr}${error.message}` });
    });
  });

/** The rows of the CSV that the first recipe of each language reads. */
const { text: csv } = await service.request({
  method: 'GET',
  url: '/v3/prices/nickel?regions=Europe&dateFrom=2026-06-01&includeSeries=true&format=csv',
});
const rows = csv.trimEnd().split('\r\n').length - 1;

t.test('every block of the recipes that can be run does, and reads the same rows', async (t) => {
  t.ok(rows > 1);
  const runnable = blocks.filter(({ language }) => language in RUNNERS);
  for (const language of Object.keys(RUNNERS)) {
    t.ok(
      runnable.some((each) => each.language === language),
      language,
    );
  }
  for (const block of runnable) {
    const title = `${block.page}: ${block.text.slice(0, 60)}`;
    const missing = missingFor(block);
    if (missing !== null) {
      t.comment(`${title}: not run, as this machine lacks ${missing}`);
      continue;
    }
    const { stdout, failure } = await run(block);
    t.equal(failure, null, title);
    t.notMatch(stdout, /"code":"[a-z]+_/, `${title}: no refusal`);
    const [, counted] = /(\d+) rows/.exec(stdout) ?? [];
    if (counted !== undefined) t.equal(Number(counted), rows, title);
    else t.ok(stdout.length > 0, title);
  }
});

const GLOBAL =
  '/v3/prices/nickel?regions=Europe&regions=Global&dateFrom=2026-06-01' +
  '&includeSeries=true&format=csv';

t.test('the request of Power Query is the one that it stands for', async (t) => {
  const [block] = blocks.filter(({ language }) => language === 'powerquery');
  const { text = '' } = block ?? {};
  const [, query = ''] = /Query = \[(.*?)\n {8}\]/s.exec(text) ?? [];
  const [, path = ''] = /RelativePath = "([^"]+)"/.exec(text) ?? [];
  const pairs = [...query.matchAll(/(\w+) = (\{[^}]*\}|"[^"]*")/g)].flatMap(([, name, values]) =>
    [...(values ?? '').matchAll(/"([^"]*)"/g)].map(([, value]) => `${name}=${value}`),
  );
  t.equal(`/${path}?${pairs.join('&')}`, GLOBAL);
  const { status, text: table } = await service.request({ method: 'GET', url: GLOBAL });
  t.equal(status, 200);
  const columns = table.split('\r\n')[0]?.split(',') ?? [];
  for (const [, column = ''] of text.matchAll(/\{"(\w+)", type/g)) t.ok(columns.includes(column));
});

t.test('the script for Google Sheets fills the sheet with the rows of the service', async (t) => {
  const [block] = blocks.filter(({ language }) => language === 'javascript');
  const { text: table } = await service.request({ method: 'GET', url: GLOBAL });
  const asked: string[] = [];
  const written: unknown[] = [];
  runInNewContext(`${block?.text}\nupdatePrices();`, {
    PropertiesService: {
      getScriptProperties: () => ({ getProperty: (name: string) => `<${name}>` }),
    },
    UrlFetchApp: {
      fetch: (address: string, options: { headers: Record<string, string> }) => {
        asked.push(address, options.headers['x-api-key'] ?? '');
        return { getResponseCode: () => 200, getContentText: () => table };
      },
    },
    Utilities: {
      parseCsv: (text: string) =>
        text
          .trimEnd()
          .split('\r\n')
          .map((row) => row.split(',')),
    },
    SpreadsheetApp: {
      getActiveSpreadsheet: () => ({
        getSheetByName: () => ({
          clearContents: () => {},
          getRange: (_row: number, _column: number, height: number) => ({
            setValues: (values: unknown[]) => written.push(height, values.length),
          }),
        }),
      }),
    },
  });
  t.same(asked, [`<COMMODITY_PRICES_URL>${GLOBAL}`, '<COMMODITY_PRICES_KEY>']);
  const lines = table.trimEnd().split('\r\n').length;
  t.same(written, [lines, lines]);
});
