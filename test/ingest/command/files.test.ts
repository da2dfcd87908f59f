import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { prices } from '../../support/process/programs.ts';
import { makeFolder } from '../../support/run/folders.ts';

const HEAD = 'code,date,low,mid,high';
/** Values of the first days of a year. */
const values = (year: number, count: number): string[] =>
  Array.from({ length: count }, (_, at) => {
    const day = new Date(Date.UTC(year, 0, 1 + at)).toISOString().slice(0, 10);
    return `CP-NI-0001,${day},10,11,12`;
  });

t.test('each file is reported under its name, and the report is what happened', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t, { seeded: true });
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const fileOf = async (name: string, ...rows: string[]): Promise<string> => {
    const path = join(folder.path, name);
    await writeFile(path, [HEAD, ...rows, ''].join('\n'));
    return path;
  };
  const load = async (...args: string[]) => {
    const { code, stdout } = await prices(t, { DATABASE_URL }, 'load', ...args);
    return { code, stdout: stdout.replace(/\((batch|vintage)[^)]*\)/g, '(…)') };
  };
  const many = await fileOf('many.csv', ...values(1900, 1_200));
  const one = await fileOf('one.csv', ...values(1910, 1));
  const wrong = await fileOf('wrong.csv', 'CP-NI-0001,1911-01-01,10,9,12');
  const none = 'unchanged 0 · corrected 0 · outdated 0';

  t.strictSame(await load('csv', many, one, wrong), {
    code: 3,
    stdout: [
      `${many}:`,
      'New values: 1,200, of 1 code',
      '  CP-NI-0001 1,200, 1900-01-01 to 1903-04-15',
      `${many}: Loaded (…).`,
      `rows 1,200 · inserted 1,200 · ${none} · rejected 0`,
      `${one}:`,
      'New values: 1, of 1 code',
      '  CP-NI-0001 1, 1910-01-01',
      `${one}: Loaded (…).`,
      `rows 1 · inserted 1 · ${none} · rejected 0`,
      `${wrong}: Refused; nothing was changed (…).`,
      `rows 1 · inserted 0 · ${none} · rejected 1`,
      '',
    ].join('\n'),
  });

  const late = await fileOf('late.csv', ...values(1912, 1));
  const absent = join(folder.path, 'absent.csv');
  const part = await prices(t, { DATABASE_URL }, 'load', 'csv', absent, late);
  t.equal(part.code, 1);
  t.match(part.stdout, `${late}: Loaded (`, 'a missing file keeps no other one from being loaded');
  t.match(part.stderr, `commodity-prices: cannot use ${absent}: there is no such file (ENOENT)\n`);

  const same = await fileOf('same.csv', ...values(1900, 1));
  t.match(await load('csv', same, '--dry-run'), {
    code: 0,
    stdout: /^A dry run; nothing is new, and nothing to correct( \(…\))?\.\nrows 1 /,
  });
  t.match(await load('csv', same), { code: 0, stdout: /^Nothing to change \(…\)\.\nrows 1 / });

  t.match(await load('log', '--limit', '3'), {
    stdout: /^BATCH (.*\n){4}\nOlder ones are not shown; a greater --limit shows more\.\n$/,
  });
  t.notMatch((await load('log', '--limit', '100')).stdout, 'Older');
  t.equal(JSON.parse((await load('log', '--limit', '3', '--json')).stdout).length, 3);
  t.match((await load('log')).stdout, / 1,200 inserted /);
});
