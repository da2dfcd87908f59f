import t from 'tap';
import { testDatabase } from '../support/database.ts';
import { serviceOn } from '../support/service.ts';
import { inTransaction, writeWorld } from '../support/world.ts';

t.test(
  'a restored backup, its epoch renewed, is never answered from what was known before',
  async (t) => {
    const database = await testDatabase(t);
    await writeWorld(database.pool);
    const { post } = await serviceOn(t, database);
    const before = (await post('nickel', {})).json;
    // The same revision numbers with other data, as after a restore: no trigger may notice.
    await inTransaction(database.pool, async (client) => {
      const tables = ['product', 'unit_of_measure'];
      for (const each of tables) await client.query(`alter table ${each} disable trigger user`);
      await client.query("update product set alias = 'Restored'");
      await client.query("update unit_of_measure set symbol = 'restored'");
      for (const each of tables) await client.query(`alter table ${each} enable trigger user`);
      await client.query("update service set epoch = 'renewed'");
    });
    const after = (await post('nickel', {})).json;
    t.match(after.$metadata.revision, /^renewed\./);
    t.equal(after.$metadata.revision.split('.')[1], before.$metadata.revision.split('.')[1]);
    for (const { product, unitOfMeasure } of after.data) {
      t.same([product.alias, unitOfMeasure.symbol], ['Restored', 'restored']);
    }
    t.ok(after.data.length > 0);
  },
);
