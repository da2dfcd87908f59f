import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { prices } from '../support/process/programs.ts';
import { recordFigures } from '../support/run/faults.ts';

t.test('a drill says that a restored copy is the original, and leaves nothing', async (t) => {
  const { url: DATABASE_URL, pool } = await testDatabase(t, { seeded: true });
  await inRevision(pool, `update price set name = name || ' (edited)' where code like '%-0001'`);
  const { code, stdout, stderr } = await prices(
    t,
    { DATABASE_URL },
    'db',
    'drill',
    '--by',
    'export',
  );
  t.equal(code, 0, stderr);
  t.match(stdout, /^series +(\d+ rows, [0-9a-f]{12}) +\1 +yes$/m);
  t.match(stdout, /^price_history +(\d+ rows, [0-9a-f]{12}) +\1 +yes$/m);
  t.match(stdout, /^change_segment +(\d+ rows, [0-9a-f]{12}) +\1 +yes$/m);
  t.match(stdout, /\nThe restored copy is the original: \d+ tables compared \(revision \w+\.4, /);
  const [, compared] = /(\d+) tables compared/.exec(stdout) ?? [];
  const [, seconds] = /^import +(\d+\.\d)$/m.exec(stdout) ?? [];
  t.ok(seconds);
  const figures = { 'tables compared by a drill': Number(compared), 'restored in': `${seconds} s` };
  recordFigures('F44', figures);
  const left = `select datname from pg_database where datname like 'prices\\_drill\\_%'
    and datname not in (select datname from pg_stat_activity where datname is not null)`;
  t.same((await pool.query(left)).rows, []);
});
