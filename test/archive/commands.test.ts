import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { exportArchive } from '../../src/archive/export.ts';
import type { ArchiveProgress as Measured } from '../../src/archive/format.ts';
import { importArchive } from '../../src/archive/import.ts';
import { ARCHIVED } from '../../src/archive/tables.ts';
import { openProgress as openMeter } from '../../src/cli/progress.ts';
import { seededDatabase, testDatabase } from '../support/database/database.ts';
import { failureOf, writeMinimalData } from '../support/database/minimal-data.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';
import { archivePath, exported } from './support.ts';

t.test('an export and an import by command, with a report', async (t) => {
  const { url } = await seededDatabase(t);
  const folder = await archivePath(t);
  const args = ['--market', 'nickel', '--market', 'cobalt', '--json'];
  const exported = await prices(t, { DATABASE_URL: url }, 'db', 'export', folder, ...args);
  t.equal(exported.code, 0, exported.stderr);
  const report = JSON.parse(exported.stdout);
  t.match(report, { folder, markets: ['cobalt', 'nickel'] });
  const manifest = await readFile(join(folder, 'manifest.json'));
  t.equal(report.manifestSha256, createHash('sha256').update(manifest).digest('hex'));
  t.match(
    exported.stderr,
    /^Database: .+\n\d+ % · \w+ · [\d,]+ of [\d,]+ rows · [\d,]+ rows\/s · \d+:\d\d left\n/,
  );
  t.match(exported.stderr, /\n100 % · [^\n]+\n$/);
  const twice = await prices(t, { DATABASE_URL: url }, 'db', 'export', folder);
  t.match(twice, { code: 2, stdout: '', stderr: /is not empty: an export needs a folder/ });

  const target = await testDatabase(t);
  const into = { DATABASE_URL: target.url };
  const taken = await prices(t, into, 'db', 'import', folder);
  t.match(taken, {
    code: 0,
    stdout: /^Imported \d+ tables, [\d,]+ rows, [\d.]+ MB \(cobalt, nickel; revision \w+\.3\)\.\n/,
    stderr: /^Database: .+\n\d+ % · checking [\w.]+ · [\d.]+ MB of [\d.]+ MB/,
  });
  const wire = await target.pool.query('select revision_text(3) as revision');
  t.match(taken.stdout, `revision ${wire.rows[0].revision})`, 'as every other command prints it');
  t.equal(report.revision, wire.rows[0].revision);
  const { rows } = await target.pool.query('select count(*)::integer as count from series');
  t.equal(rows[0].count, report.tables.series);
  const again = await prices(t, into, 'db', 'import', folder, '--json');
  t.match(again, { code: 3, stdout: '', stderr: /the database holds data/ });
});

t.test('an impossible export or import is reported in a line, with an exit code', async (t) => {
  const { url } = await seededDatabase(t);
  const folder = await archivePath(t);
  const db = (...args: string[]) => prices(t, { DATABASE_URL: url }, 'db', ...args);
  const misspelt = await db('export', folder, '--market', 'nikel');
  t.match(misspelt, { code: 2, stderr: /--market nikel: .* did you mean nickel\?/ });
  t.match(await db('import', folder), { code: 3, stderr: /holds no manifest\.json/ });
});

t.test('the account of the service may export, that of the migrator import', async (t) => {
  const original = await testDatabase(t);
  await writeMinimalData(original.pool);
  const archive = await exported(t, original.client);
  const target = await roledDatabase(t);
  const byLoader = importArchive(target.as('loader'), { folder: archive });
  t.match(await failureOf(byLoader), { message: /must be owner of|permission denied/ });
  await importArchive(target.as('migrator'), { folder: archive });
  const folder = await archivePath(t);
  const manifest = await exportArchive(target.as('service'), { folder, markets: null });
  t.match(manifest, { revision: '1', files: { length: ARCHIVED.length } });
});

/** The output of a progress meter whose clock advances by 1.5 s per state. */
function written(isTerminal: boolean, states: readonly Measured[]): string[] {
  const texts: string[] = [];
  let time = 0;
  const meter = openMeter({ isTerminal, write: (text) => texts.push(text), now: () => time });
  for (const state of states) {
    meter.update(state);
    time += 1_500;
  }
  meter.end();
  return texts;
}

const rows = (done: number, total = 4_000): Measured => ({
  item: 'series',
  done,
  total,
  unit: 'rows',
});

t.test('progress in a pipe is a line for each 10 %, with rate and time left', async (t) => {
  t.same(written(false, [rows(0), rows(100), rows(1_000), rows(1_010), rows(4_000)]), [
    '20 % · series · 1,000 of 4,000 rows · 333 rows/s · 0:09 left\n',
    '100 % · series · 4,000 of 4,000 rows · 666 rows/s\n',
  ]);
  const checking = { item: 'checking a.csv', done: 5e6, total: 1e7, unit: 'bytes' } as const;
  t.same(
    written(false, [{ ...checking, done: 0 }, checking, rows(2_000)]),
    [
      '50 % · checking a.csv · 5.0 MB of 10.0 MB · 3.3 MB/s · 0:02 left\n',
      '50 % · series · 2,000 of 4,000 rows\n',
    ],
    'each piece of work has a clock of its own',
  );
});

t.test('progress on a terminal is a bar that is gone at the end', async (t) => {
  const clear = '\r\u001b[2K';
  const [bar, half] = ['-'.repeat(24), `${'#'.repeat(12)}${'-'.repeat(12)}`];
  t.same(written(true, [rows(0), rows(2_000)]), [
    `${clear}[${bar}] 0 % · series · 0 of 4,000 rows`,
    `${clear}[${half}] 50 % · series · 2,000 of 4,000 rows · 1,333 rows/s · 0:02 left`,
    clear,
  ]);
  t.same(written(true, []), []);
});
