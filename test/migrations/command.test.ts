import t from 'tap';
import { migrateUp } from '../../src/db/migrate/migrate.ts';
import { testDatabase } from '../support/database/database.ts';
import { migrationsWith } from '../support/database/migrations.ts';
import { prices } from '../support/process/programs.ts';

t.test('the command reports a newer schema', async (t) => {
  const { url: DATABASE_URL, db } = await testDatabase(t);
  const { url: folder } = await migrationsWith(t, {
    '9998-older': { up: 'select 1' },
    '9999-newer': { up: 'select 1' },
  });
  const migrate = (...args: string[]) => prices(t, { DATABASE_URL }, 'db', 'migrate', ...args);
  await migrateUp(db, { folder });
  t.match(await migrate(), { code: 0, stdout: /^A newer version has migrated.*\(9998-older / });
  t.match((await migrate('--status')).stdout, /9999-newer +20\S+ +of a newer version\n/);
});

t.test('the command reports a file that has changed since it ran', async (t) => {
  const { url: DATABASE_URL, pool } = await testDatabase(t);
  const before = await prices(t, { DATABASE_URL }, 'db', 'migrate', '--dry-run');
  t.same([before.code, before.stdout], [0, '-- The schema is up to date: nothing would run.\n']);
  await pool.query(
    "update migration_file set sha256 = repeat('0', 64) where name = '0002-reference'",
  );
  for (const mode of [[], ['--dry-run']]) {
    const { code, stdout, stderr } = await prices(t, { DATABASE_URL }, 'db', 'migrate', ...mode);
    t.same([code, stdout], [1, '']);
    t.match(
      stderr,
      /^Database: .+\ncommodity-prices: migrations\/0002-reference\.ts has changed since .+\n$/,
    );
  }
  const status = await prices(t, { DATABASE_URL }, 'db', 'migrate', '--status');
  t.match(status.stdout, /0002-reference +20\S+ +its file is not what ran\n/);
});
