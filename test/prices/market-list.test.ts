import t from 'tap';
import { extentsNow } from '../../src/prices/market/market-list.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';

t.test('the markets are read only where the server has the commit', async (t) => {
  const { db, pool } = await testDatabase(t);
  await writeMinimalData(pool);
  await inRevision(pool, insertOf('series', pointRow()));
  const { rows } = await pool.query<{ number: string; commit_id: string }>(
    'select number, commit_id from revision order by number desc limit 1',
  );
  const [{ number, commit_id: id } = { number: '', commit_id: '' }] = rows;
  t.ok((await extentsNow(db, `${number}.${id}`)).size > 0);
  await t.rejects(extentsNow(db, `${number}.zzzzzz`), { code: '55000' });
});
