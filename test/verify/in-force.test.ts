import { readFile } from 'node:fs/promises';
import t from 'tap';
import { schemaDefinitions, schemaDifferences } from '../../src/verify/schema.ts';
import { testDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';

const FILE = new URL('../../src/verify/in-force.txt', import.meta.url);

t.test('the record of what is in force is that of a freshly migrated database', async (t) => {
  const { pool } = await testDatabase(t);
  const lines = await inTransaction(pool, schemaDefinitions, 'rollback');
  const recorded = (await readFile(FILE, 'utf8')).trim().split('\n');
  t.strictSame(lines, recorded, 'after a migration: npm run generate');
  t.equal(new Set(lines.map((line) => line.split(':')[0])).size, lines.length);
  const bad = / (disabled|invalid|unlogged|row security|for everybody)$|NOT VALID/;
  t.same(
    lines.filter((line) => bad.test(line)),
    ['table rate_usage: unlogged'],
  );
});

t.test('the record is the same, however the database writes intervals', async (t) => {
  const { pool } = await testDatabase(t);
  const different = await inTransaction(
    pool,
    async (client) => {
      await client.query('set local intervalstyle = iso_8601');
      return schemaDifferences(client);
    },
    'rollback',
  );
  t.same(different, []);
});

t.test(
  'a schema that was recreated from its own definition, as by a restore, is the same',
  async (t) => {
    const { pool } = await testDatabase(t);
    const [different, again] = await inTransaction(
      pool,
      async (client) => {
        const before = await schemaDefinitions(client);
        const { rows } = await client.query<{ drop: string; make: string }>(`
        select format('drop trigger %I on %s', tgname, tgrelid::regclass) as drop,
          pg_get_triggerdef(oid) as make
        from pg_trigger where not tgisinternal
        union all
        select format('alter table %s drop constraint %I', conrelid::regclass, conname),
          format('alter table %s add constraint %I %s', conrelid::regclass, conname,
            pg_get_constraintdef(oid))
        from pg_constraint where contype = 'c' and conrelid <> 0`);
        t.ok(rows.length > 100);
        for (const { drop, make } of rows) {
          await client.query(drop);
          await client.query(make);
        }
        const after = await schemaDefinitions(client);
        return [await schemaDifferences(client), after.filter((line) => !before.includes(line))];
      },
      'rollback',
    );
    t.same(different, []);
    t.not(again?.length, 0, 'though the server writes some of it otherwise');
  },
);
