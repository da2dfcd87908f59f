import t from 'tap';
import { seed } from '../../src/db/seed/seed.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { exported, imported } from '../archive/support.ts';
import { loadText, points } from '../ingest/support/loading.ts';
import { testDatabase } from '../support/database/database.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { findings, storedWorld } from './support.ts';

t.test('nothing is found where everything is as it must be', async (t) => {
  const empty = await testDatabase(t);
  t.strictSame(await findings(empty.client), [], 'after the migrations');
  const world = await storedWorld(t);
  t.strictSame(await findings(world.client), [], 'after loads, corrections and withdrawals');
  const { rows } = await world.pool.query(
    `select (select count(*)::int from series_history) as history,
      (select count(*)::int from fx_rate_history) as rates,
      (select count(*)::int from load_batch where status = 'refused') as refused,
      (select count(*)::int from load_coverage) as covered`,
  );
  t.match(rows, [{ history: 4, rates: 1, refused: 1, covered: 8 }]);
  const steps: number[] = [];
  await verify(empty.client, RULES, (done) => steps.push(done));
  t.strictSame(steps, [...RULES.keys()], 'verify reports its progress');
});

t.test('nothing is found in a seeded database after changes of every kind', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  t.strictSame(await findings(database.client), [], 'freshly seeded');
  for (const change of Object.values(CHANGES)) await change(database, t);
  t.strictSame(await findings(database.client), [], 'after the changes');
  await seed(database.client);
  t.strictSame(await findings(database.client), [], 'seeded again');
  const copy = await imported(t, await exported(t, database.client));
  t.strictSame(await findings(copy.client), [], 'exported and imported');
});

t.test('nothing is found where an archive of some markets was imported', async (t) => {
  const original = await testDatabase(t, { seeded: true });
  await CHANGES['corrections']?.(original, t);
  await CHANGES['a load']?.(original, t);
  const folder = await exported(t, original.client, ['nickel', 'cobalt']);
  const { client } = await imported(t, folder);
  t.strictSame(await findings(client), []);
  await seed(client);
  await loadText(
    t,
    client,
    'csv',
    points('CP-NI-0001,2026-07-03,,18200,,', 'CP-CU-0001,2026-07-03,,9,,'),
  );
  t.strictSame(await findings(client), [], 'nor after loads of the other markets');
});
