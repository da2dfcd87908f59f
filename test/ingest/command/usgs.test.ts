import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { dataFolder, prices } from '../../support/process/programs.ts';

t.test(
  'tables of several releases are loaded from the oldest on, and each is reported',
  async (t) => {
    const { url: DATABASE_URL } = await testDatabase(t, { seeded: true });
    const folder = join(await dataFolder(t), '..');
    const fileOf = async (release: number, value: string) => {
      const path = join(folder, `mcs${release}.csv`);
      const row = `MCS${release},Lithium,2020,${value}`;
      await writeFile(path, `DataSource,Commodity,Year,Price_dt\r\n${row}\r\n`);
      return path;
    };
    const [newer, wrong, older] = [
      await fileOf(2024, '8600'),
      await fileOf(2023, 'no'),
      await fileOf(2022, '8000'),
    ];
    const allowed = ['--allow-corrections', '--reason', 'the newer release'];
    const load = (...args: string[]) =>
      prices(t, { DATABASE_URL }, 'load', 'usgs', newer, wrong, older, ...allowed, ...args);
    const result = await load('--json');
    t.equal(result.code, 3, 'one of them was refused');
    t.match(JSON.parse(result.stdout), [
      { file: older, status: 'applied', vintage: '2022-01-31', counts: { inserted: 1 } },
      { file: wrong, status: 'refused', errors: [{ file: wrong, line: 2, column: 'Price_dt' }] },
      { file: newer, status: 'applied', vintage: '2024-01-31', counts: { corrected: 1 } },
    ]);
    const again = await load();
    t.equal(again.code, 3);
    t.match(
      again.stderr,
      /\n1 of 3 files refused: \S+mcs2023\.csv\n$/,
      'named once more, at the end',
    );
    t.match(again.stdout, /mcs2022\.csv: This file was loaded before[\s\S]*mcs2023\.csv: Refused/);
  },
);

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const shell = promisify(execFile);

t.test('the command line that a refusal shows loads the file as it is printed', async (t) => {
  const { url: DATABASE_URL, pool } = await testDatabase(t, { seeded: true });
  const file = join(await dataFolder(t), '..', "it's nickel 2027.csv");
  const header = 'DataSource,Commodity,Year,Price_Rotterdam_dt,Price_dlb,,';
  await writeFile(file, `\ufeff${header}\r\nMCS2025,Nickel,2022,"25,815",W,,\r\n,,,,,,\r\n`);
  const refused = await prices(t, { DATABASE_URL }, 'load', 'usgs', file);
  t.equal(refused.code, 3);
  const [, problem, condition, line = ''] = refused.stderr.split('\n');
  t.match(problem, 'nickel 2027.csv:1: Price_Rotterdam_dt: No price of this name is known');
  t.equal(
    condition,
    'If it holds CP-NI-9101 (Nickel metal, LME cash, US dollars per tonne), load it by:',
  );
  const { PATH } = process.env;
  await shell('sh', ['-c', line], { cwd: ROOT, env: { PATH, DATABASE_URL } });
  const { rows } = await pool.query(
    "select mid from series s join price p on p.id = price_id where code = 'CP-NI-9101'",
  );
  t.strictSame(rows, [{ mid: '25815' }]);
});
