import t from 'tap';
import { lacksCommit } from '../../src/db/link/replication.ts';
import { newestRevision } from '../../src/db/revisions.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision, writeMinimalData } from '../support/database/minimal-data.ts';

t.test(
  'a server lacks the commit that another one reported, unless its epoch differs',
  async (t) => {
    const { pool, db } = await testDatabase(t);
    const client = await pool.connect();
    t.teardown(() => client.release());
    const empty = await newestRevision(db);
    t.notOk(await lacksCommit(client, null), 'no commit is known');
    t.notOk(await lacksCommit(client, empty), 'nothing was committed');
    await writeMinimalData(pool);
    const newest = await newestRevision(db);
    const { epoch } = newest;
    t.notOk(await lacksCommit(client, empty));
    t.notOk(await lacksCommit(client, newest));
    t.ok(await lacksCommit(client, { epoch, revision: '2.abcdef' }), 'one that it has not');
    t.ok(
      await lacksCommit(client, { epoch, revision: '1.abcdef' }),
      'one whose number it took again',
    );
    await inRevision(pool, "update price set name = 'New'");
    t.notOk(await lacksCommit(client, newest), 'the server may have later commits');
    t.ok(
      await lacksCommit(client, { epoch, revision: '1.abcdef' }),
      'also after one that it has not',
    );
    t.notOk(await lacksCommit(client, { epoch: 'zzzz', revision: '9.abcdef' }), 'a renewed epoch');
    await pool.query('alter table service rename to gone');
    t.ok(await lacksCommit(client, newest), 'without the tables');
  },
);
