import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { exportArchive } from '../../src/archive/export.ts';
import { importArchive } from '../../src/archive/import.ts';
import { ARCHIVED } from '../../src/archive/tables.ts';
import { meterText } from '../../src/commands/meter.ts';
import { seededDatabase, testDatabase } from '../support/database.ts';
import { roledDatabase } from '../support/roles.ts';
import { prices } from '../support/running.ts';
import { failureOf, writeWorld } from '../support/world.ts';
import { archivePath, exported } from './support.ts';

t.test('an export and an import by command, in all formats and with a report', async (t) => {
  const { url } = await seededDatabase(t);
  const folder = await archivePath(t);
  const args = ['--market', 'nickel', '--market', 'cobalt', '--format', 'parquet', '--json'];
  const made = await prices(t, { DATABASE_URL: url }, 'db', 'export', folder, ...args);
  t.equal(made.code, 0, made.stderr);
  const report = JSON.parse(made.stdout);
  t.match(report, { folder, format: 'parquet', markets: ['cobalt', 'nickel'] });
  const manifest = await readFile(join(folder, 'manifest.json'));
  t.equal(report.manifestSha256, createHash('sha256').update(manifest).digest('hex'));
  t.match(made.stderr, /^\d+ % · \w+ · [\d,]+ of [\d,]+ rows · [\d,]+ rows\/s · \d+ s left\n/);
  t.match(made.stderr, /\n100 % · [^\n]+\n$/);
  const twice = await prices(t, { DATABASE_URL: url }, 'db', 'export', folder);
  t.match(twice, { code: 2, stdout: '', stderr: /is not empty: an export needs a folder/ });

  const target = await testDatabase(t);
  const into = { DATABASE_URL: target.url };
  const taken = await prices(t, into, 'db', 'import', folder);
  t.match(taken, {
    code: 0,
    stdout: /^Imported \d+ tables, [\d,]+ rows, [\d.]+ MB \(cobalt, nickel; revision \w+\.3\)\.\n/,
    stderr: /^\d+ % · checking [\w.]+ · [\d.]+ MB of [\d.]+ MB/,
  });
  const { rows } = await target.pool.query('select count(*)::integer as count from series');
  t.equal(rows[0].count, report.tables.series);
  const again = await prices(t, into, 'db', 'import', folder, '--json');
  t.match(again, { code: 3, stdout: '', stderr: /the database holds data/ });
});

t.test('what cannot be is told in a line, with an exit code', async (t) => {
  const { url } = await seededDatabase(t);
  const folder = await archivePath(t);
  const db = (...args: string[]) => prices(t, { DATABASE_URL: url }, 'db', ...args);
  const stranger = await db('export', folder, '--market', 'nikel');
  t.match(stranger, { code: 2, stderr: /--market nikel: .* did you mean nickel\?/ });
  t.match(await db('export', folder, '--format', 'xml'), {
    code: 2,
    stderr: /csv, ndjson, parquet/,
  });
  t.match(await db('import', folder), { code: 3, stderr: /holds no manifest\.json/ });
});

t.test('the account of the service may export, that of the migrator import', async (t) => {
  const original = await testDatabase(t);
  await writeWorld(original.pool);
  const archive = await exported(t, original.client, 'csv');
  const target = await roledDatabase(t);
  const byLoader = importArchive(target.as('loader'), { folder: archive });
  t.match(await failureOf(byLoader), { message: /must be owner of|permission denied/ });
  await importArchive(target.as('migrator'), { folder: archive });
  const folder = await archivePath(t);
  const request = { folder, format: 'ndjson', markets: null } as const;
  const manifest = await exportArchive(target.as('service'), request);
  t.match(manifest, { revision: '1', files: { length: ARCHIVED.length } });
});

t.test('progress is told in whole numbers', async (t) => {
  t.equal(
    meterText('series', 1_200, 2_400, 'rows', 4),
    '50 % · series · 1,200 of 2,400 rows · 300 rows/s · 4 s left',
  );
  t.equal(
    meterText('series', 1_000_000, 200_000_000, 'rows', 10),
    '0 % · series · 1,000,000 of 200,000,000 rows · 100,000 rows/s · 33 min 10 s left',
  );
  t.equal(meterText('a', 0, 10, 'rows', 0), '0 % · a · 0 of 10 rows · 0 rows/s');
  t.equal(
    meterText('a', 5e6, 1e7, 'bytes', 1),
    '50 % · a · 5.0 MB of 10.0 MB · 5.0 MB/s · 1 s left',
  );
});
