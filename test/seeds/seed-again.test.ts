import { sql } from 'kysely';
import t from 'tap';
import { CORRECTIONS } from '../../seeds/awkward.ts';
import { sampleMarkets } from '../../seeds/sample.ts';
import { openRevision } from '../../src/db/connection.ts';
import { lacksSamples, seed } from '../../src/db/seed/seed.ts';
import { testDatabase } from '../support/database/database.ts';

t.test('samples are lacking until both of their steps are in the ledger', async (t) => {
  const { db, client } = await testDatabase(t);
  t.equal(await lacksSamples(db), true, 'at first');
  const breakOff = (): void => {
    throw new Error('broken off');
  };
  await t.rejects(seed(client, { onProgress: breakOff }));
  t.equal(await lacksSamples(db), true, 'after the reference data alone');
  await seed(client);
  t.equal(await lacksSamples(db), false);
  await db.deleteFrom('load_batch').where('file_name', '=', 'seeds, corrections').execute();
  t.equal(await lacksSamples(db), true, 'without the corrections');
  t.match((await seed(client)).sample, { points: 0, corrected: 0 });
  t.equal(await lacksSamples(db), false, 'also when there was nothing left to correct');
  await db.transaction().execute(async (trx) => {
    await openRevision(trx, 'test');
    await trx.deleteFrom('series').execute();
    await trx.deleteFrom('price').execute();
  });
  t.equal(await lacksSamples(db), false, 'removed rows are not restored');
});

t.test('a database of other prices lacks no samples', async (t) => {
  const { db } = await testDatabase(t, { seeded: true });
  await db.deleteFrom('load_batch').execute();
  t.equal(await lacksSamples(db), false);
});

t.test('an edited reference name stays, and new samples still find it', async (t) => {
  const { db, client } = await testDatabase(t);
  await seed(client, { reference: true });
  const edits = [
    "update currency set name = 'Dollars' where iso = 'USD'",
    `update dimension_value set name = 'Mine', match_key = 'mine'
     where kind = 'incoterm' and slug = 'cif'`,
    "update unit_of_measure set name = 'Ton', name_key = 'ton' where slug = 'tonne'",
    `update product set name = 'Nickel!', match_key = 'nickel!'
     where id = (select min(p.id) from product p join market m on m.id = p.market_id
       where m.slug = 'nickel')`,
  ];
  await db.transaction().execute(async (trx) => {
    await openRevision(trx, 'test');
    for (const edit of edits) await sql.raw(edit).execute(trx);
  });
  const names = sql<{
    name: string;
  }>`select name from currency union all select name from dimension_value
    union all select name from unit_of_measure union all select name from product order by 1`;
  const edited = (await names.execute(db)).rows;
  const { reference, sample } = await seed(client);
  t.same(reference, { inserted: 0 });
  const { length } = (await sampleMarkets()).flatMap(({ prices }) => prices);
  t.match(sample, { prices: length, corrected: CORRECTIONS.length });
  t.same((await names.execute(db)).rows, edited);
});

t.test('sample payables of an earlier version get their references once', async (t) => {
  const { db, client } = await testDatabase(t, { seeded: true });
  const lacking = async (): Promise<number> => {
    const { rows } = await sql<{ count: number }>`select count(*)::integer as count from price
      where price_type = 'payable' and payable_reference is null`.execute(db);
    return rows[0]?.count ?? 0;
  };
  await db.deleteFrom('load_batch').execute();
  await db.transaction().execute(async (trx) => {
    await openRevision(trx, 'test');
    await sql`update price set payable_reference = null`.execute(trx);
  });
  t.ok((await lacking()) > 20);
  t.match((await seed(client)).sample, { prices: 0, points: 0 });
  t.equal(await lacking(), 0);
});
