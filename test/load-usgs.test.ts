import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { testDatabase } from './support/database.ts';
import { dataFolder, prices } from './support/running.ts';

t.test('tables of several releases are loaded from the oldest on, and each is told', async (t) => {
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
  const told = await load('--json');
  t.equal(told.code, 3, 'one of them was refused');
  t.match(JSON.parse(told.stdout), [
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
});
