import t from 'tap';
import { lacks } from '../../src/db/link/servers.ts';
import { newestRevision } from '../../src/db/revisions.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision, writeWorld } from '../support/database/world.ts';

t.test(
  'a server lacks the commit that another has told of, unless its data are others',
  async (t) => {
    const { pool, db } = await testDatabase(t);
    const client = await pool.connect();
    t.teardown(() => client.release());
    const empty = await newestRevision(db);
    t.notOk(await lacks(client, null), 'nothing was told');
    t.notOk(await lacks(client, empty), 'nothing was committed');
    await writeWorld(pool);
    const told = await newestRevision(db);
    const { epoch } = told;
    t.notOk(await lacks(client, empty));
    t.notOk(await lacks(client, told));
    t.ok(await lacks(client, { epoch, revision: '2.abcdef' }), 'one that it has not');
    t.ok(await lacks(client, { epoch, revision: '1.abcdef' }), 'one whose number it took again');
    await inRevision(pool, "update price set name = 'New'");
    t.notOk(await lacks(client, told), 'it may have more');
    t.ok(await lacks(client, { epoch, revision: '1.abcdef' }), 'also after one that it has not');
    t.notOk(await lacks(client, { epoch: 'zzzz', revision: '9.abcdef' }), 'a renewed epoch');
    await pool.query('alter table service rename to gone');
    t.ok(await lacks(client, told), 'without the tables');
  },
);
