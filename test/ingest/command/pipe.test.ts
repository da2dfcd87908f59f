import { execFileSync } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { prices } from '../../support/process/programs.ts';
import { makeFolder } from '../../support/run/folders.ts';

const NOT_A_FILE = /pipe is not a regular file; [^\n]+\n$/;

t.test('a named pipe is refused at once, with and without a writer', async (t) => {
  const { url: DATABASE_URL, pool } = await testDatabase(t, { seeded: true });
  const batches = async () => (await pool.query('select from load_batch')).rowCount;
  const before = await batches();
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const pipe = join(folder.path, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const refused = { code: 1, stdout: '', stderr: NOT_A_FILE };
  const withdrawal = ['withdraw', '--file', pipe, '--reason', 'misprint'];
  for (const args of [['load', 'csv', pipe], ['load', 'ndjson', pipe], withdrawal]) {
    t.match(await prices(t, { DATABASE_URL }, ...args), refused, args.join(' '));
  }
  // Opened for both directions, the pipe has a writer that sends nothing.
  const writer = await open(pipe, 'r+');
  t.teardown(() => writer.close());
  t.match(await prices(t, { DATABASE_URL }, 'load', 'csv', pipe), refused, 'with a writer');
  t.equal(await batches(), before);
});
