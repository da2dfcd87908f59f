import t from 'tap';
import { prices } from '../../support/process/programs.ts';
import { describePrices, fileOf, loadingDatabase } from '../support/loading.ts';
import { num, sheetOf } from '../support/sheets.ts';

const MAPPING = 'code: { column: Code }\ndate: { column: Date }\nmid: Price\n';

t.test('a table is loaded with the mapping that the command line names', async (t) => {
  const { client, url } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const load = (...args: string[]) => prices(t, { DATABASE_URL: url }, 'load', 'table', ...args);
  const mapping = await fileOf(t, MAPPING, 'mapping.yaml');
  const csv = await fileOf(t, 'Code,Date,Price\nA,2026-01-08,1\n', 'prices.csv');
  const loaded = await load(csv, '--map', mapping, '--json');
  t.match([loaded.code, JSON.parse(loaded.stdout)], [0, { status: 'applied' }]);
  const cells = { A1: 'Code', B1: 'Date', C1: 'Price', A2: 'A', B2: '2026-01-09', C2: num('x') };
  const book = await fileOf(t, sheetOf(cells), 'prices.xlsx');
  const refused = await load(book, '--map', mapping);
  t.equal(refused.code, 3);
  t.match(refused.stderr, 'prices.xlsx:2: Prices!C2 "x": The cell does not hold a number');
});

t.test('a missing or invalid mapping is reported before anything is read', async (t) => {
  const { url } = await loadingDatabase(t);
  const load = (...args: string[]) => prices(t, { DATABASE_URL: url }, 'load', ...args);
  const without = await load('table', 'prices.csv');
  t.match(without, { code: 2, stderr: /required option '--map <mapping>'/ });
  const wrong = await fileOf(t, 'text: { delimiter: comas }\nmids: Price\n', 'wrong.yaml');
  const { code, stderr, stdout } = await load('table', 'there is no such file', '--map', wrong);
  t.strictSame([code, stdout], [2, '']);
  const lines = stderr.trim().split('\n');
  t.equal(lines.length, 3);
  t.match(lines[0], /wrong\.yaml:1: \/text\/delimiter: .*did you mean "comma"\?$/);
  t.match(lines[1], /wrong\.yaml:2: \/mids: There is no member "mids"; did you mean "mid"\?$/);
  t.match(lines[2], /^commodity-prices: .*wrong\.yaml cannot be used: 2 things are wrong in it$/);
  t.match(await load('table', 'x.csv', '--map', `${wrong}.none`), {
    code: 1,
    stderr: /there is no such file/,
  });
  t.match(await load('csv', 'x.csv', '--map', wrong), { code: 2, stderr: /unknown option/ });
});
