import t from 'tap';
import { migrateDown, migrateUp, migrationStatus } from '../../src/db/migrate.ts';
import { roledDatabase, serviceClient } from '../support/roles.ts';
import { until } from '../support/sockets.ts';

/** What a service of the very first version asks a database. */
const FIRST = [
  `select epoch, (select max(revision) from revision_scope where scope = 'nickel') from service`,
  `select p.code, p.name, v.name as region from price_at(2) p
    left join dimension_value_at(2) v on v.id = p.region_id
    where p.market_id = (select id from market where slug = 'nickel') order by p.code`,
  `select date, low, mid, high, published_at, corrections from series_at(2)
    where price_id in (select id from price where code like 'CP-NI-%') order by price_id, date`,
  `select date, rate from fx_rate_at(2) where source = 'SAMPLE' order by date`,
  `select digest, expires_at, array(select scope from api_key_scope where api_key_id = api_key.id)
    from api_key where public_id = '0123456789'`,
  'select revision_as_of((select committed_at from revision where number = 2))',
];

t.test('what the first version asks is answered while the schema becomes this one', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const migrator = database.as('migrator');
  while ((await migrateDown(migrator.db, { loseData: true })) !== '0002-changes');
  const pending = (await migrationStatus(migrator.db)).filter(({ state }) => state === 'pending');
  t.ok(pending.length > 5);
  const { pool } = serviceClient(t, database);
  let isOver = false;
  const answers = FIRST.map(() => new Set<string>());
  const times: number[] = [];
  const reader = async (from: number): Promise<void> => {
    for (let next = from; !isOver; next += 1) {
      const at = next % FIRST.length;
      const begun = performance.now();
      const { rows } = await pool.query(FIRST[at] ?? '');
      times.push(performance.now() - begun);
      answers[at]?.add(JSON.stringify(rows));
    }
  };
  const readers = [0, 1, 3, 5].map(reader);
  t.same(
    await migrateUp(migrator.db, { triesMax: 1_000 }),
    pending.map(({ name }) => name),
  );
  const asked = times.length;
  await until('readers go on', () => times.length > asked + 10);
  isOver = true;
  await Promise.all(readers);
  t.comment(`${times.length} statements, the longest took ${Math.round(Math.max(...times))} ms`);
  t.same(
    answers.map(({ size }) => size),
    FIRST.map(() => 1),
    'none failed, and the answers never changed',
  );
});
