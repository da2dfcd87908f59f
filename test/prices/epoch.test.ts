import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  inTransaction,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';
import { prices } from '../support/process/programs.ts';

t.test(
  'a restored backup, its epoch renewed, is never answered from what was known before',
  async (t) => {
    const database = await testDatabase(t);
    await writeMinimalData(database.pool);
    await inRevision(database.pool, insertOf('series', pointRow()));
    const { post, request } = await serviceOn(t, database);
    const before = (await post('nickel', {})).json;
    const got = async (url: string) => (await request({ method: 'GET', url })).json;
    const list = await got('/v3/prices');
    await got('/v3/prices/nickel/filters');
    // The same revision numbers with other data, as after a restore: no trigger may notice.
    await inTransaction(database.pool, async (client) => {
      const tables = ['product', 'unit_of_measure', 'series'];
      for (const each of tables) await client.query(`alter table ${each} disable trigger user`);
      await client.query("update product set alias = 'Restored'");
      await client.query("update unit_of_measure set symbol = 'restored'");
      await client.query("update product set name = 'Restored'");
      await client.query('delete from series');
      for (const each of tables) await client.query(`alter table ${each} enable trigger user`);
      await client.query("update service set epoch = 'renewed'");
    });
    const after = (await post('nickel', {})).json;
    t.match(after.$metadata.revision, /^renewed[0-9a-z]{6}\./);
    t.equal(after.$metadata.revision.split('.')[1], before.$metadata.revision.split('.')[1]);
    for (const { product, unitOfMeasure } of after.data) {
      t.same([product.alias, unitOfMeasure.symbol], ['Restored', 'restored']);
    }
    t.ok(after.data.length > 0);
    const values = await got('/v3/prices/nickel/filters');
    t.same(
      values.data.products.map(({ name }: { name: string }) => name),
      ['Restored'],
    );
    t.ok(list.data.some(({ lastDate }: { lastDate: string | null }) => lastDate !== null));
    const { data } = await got('/v3/prices');
    t.ok(data.every(({ lastDate }: { lastDate: string | null }) => lastDate === null));
  },
);

t.test('the command renews the epoch, and what clients hold is unknown', async (t) => {
  const database = await testDatabase(t);
  await writeMinimalData(database.pool);
  const service = await serviceOn(t, database);
  const before = (await service.post('nickel', {})).json.$metadata;
  const feed = await service.request({ method: 'GET', url: '/v3/changes' });
  const position = feed.json.$metadata.nextSeq;
  const get = (etag: string) =>
    service.request({
      method: 'GET',
      url: '/v3/prices/nickel',
      headers: { 'if-none-match': etag },
    });
  const { etag = '' } = (await get('"none"')).headers;
  t.equal((await get(etag)).status, 304);
  const run = await prices(
    t,
    { DATABASE_URL: database.url },
    'db',
    'renew-epoch',
    '--yes',
    '--json',
  );
  t.equal(run.code, 0);
  const renewed = JSON.parse(run.stdout);
  t.equal(renewed.before, before.revision.slice(0, 6));
  t.match(renewed.after, /^[0-9a-f]{6}$/);
  t.not(renewed.after, renewed.before);
  const after = (await service.post('nickel', {})).json.$metadata;
  t.equal(after.revision, renewed.revision);
  const code = 'unknown_revision';
  const unknown = { status: 400, json: { code, errors: [{ code }] } };
  const { revision } = before;
  t.match(await service.post('nickel', { options: { revision } }), unknown);
  const url = `/v3/changes?after=${position}`;
  t.match(await service.request({ method: 'GET', url }), unknown);
  t.equal((await get(etag)).status, 200);
});
