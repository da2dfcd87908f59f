import t from 'tap';
import { listKeys, showKey } from '../../src/auth/keys/info.ts';
import { createKey, revokeKey, rotateKey } from '../../src/auth/keys/keys.ts';
import { Primary } from '../../src/db/as-of.ts';
import { migrateUp, migrationStatus } from '../../src/db/migrate/migrate.ts';
import { applyRoles, LOGINS, roleName } from '../../src/db/migrate/roles.ts';
import { newestRevision, wireText } from '../../src/db/revisions.ts';
import { seed } from '../../src/db/seed/seed.ts';
import { administer, setting, siblingUrl, testDatabase } from '../support/database/database.ts';
import { migrationsWith } from '../support/database/migrations.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import { accountPrefix, addressAs, clientAs, roledDatabase } from '../support/database/roles.ts';
import { serviceOn } from '../support/http/service.ts';

t.test('the account for keys makes and revokes keys, and sees no price', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { db, pool } = database.as('keys');
  const created = await createKey(db, { name: 'a', scopes: ['prices:nickel'], expiresAt: null });
  await createKey(db, { name: 'b', scopes: ['prices:*'], expiresAt: new Date('2100-01-01') });
  t.match(await revokeKey(db, created.id, 'lost'), { status: 'revoked' });
  t.equal((await listKeys(db)).length, 2);
  for (const statement of [
    'select from price',
    'select from series',
    'select from load_batch',
    'delete from api_key',
    "update api_key set digest = '\\x00'",
    'update api_key set created_at = now()',
    "insert into access_scope (scope) values ('prices:gold')",
    "select open_revision('x')",
    'create temporary table mine (a integer)',
  ]) {
    await t.rejects(pool.query(statement), /permission denied/, statement);
  }
});

t.test('the account for usage notes when a key was used, and no more', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { id } = await createKey(database.db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  const { pool } = database.as('usage');
  await pool.query('select note_used($1, $2)', [[id], ['2026-01-01T00:00:00Z']]);
  t.match(await showKey(database.as('keys').db, id), { lastUsedAt: '2026-01-01T00:00:00Z' });
  for (const statement of [
    'select digest from api_key',
    'select public_id from api_key',
    'select from api_key for share',
    'update api_key set last_used_at = now()',
    'update api_key set revoked_at = now()',
    "insert into api_key (public_id) values ('0123456789')",
    'select from key_use',
    'delete from key_use',
    'begin; lock table api_key in access share mode',
    'select from api_key_scope',
    'select from price',
    'select keys_version from service',
    'select from revision for share',
    'create temporary table mine (a integer)',
  ]) {
    await t.rejects(pool.query(statement), /permission denied/, statement);
  }
});

t.test('the account for usage reads the newest revision, for nodes on a standby', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const onFailure = (error: Error) => t.fail(error.message);
  const primary = new Primary(database.as('usage').pool, { silenceMs: 20_000, onFailure });
  const { epoch, revision } = await newestRevision(database.db);
  t.equal(await primary.newest(), wireText(epoch, revision));
  t.match(await primary.settledAt('2026-01-01T00:00:00.000000Z'), { revision });
});

t.test('no open transaction of the account for usage delays the end of a key', async (t) => {
  const database = await roledDatabase(t);
  const { db } = database.as('keys');
  const make = async () =>
    (await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null })).id;
  const ids = [await make(), await make(), await make()] as const;
  const [revoked, rotated, deleted] = ids;
  const note = 'select note_used($1, array[now(), now(), now()])';
  const used = database.as('usage').pool;
  await inTransaction(used, (session) => session.query(note, [ids]));
  const holder = await used.connect();
  t.teardown(() => holder.release());
  // An attacker can lift the timeouts of the account, and repeats what the account may do.
  await holder.query('set idle_in_transaction_session_timeout = 0');
  await holder.query('begin');
  await holder.query(note, [ids]);
  await holder.query("select note_used($1, array_fill('2999-01-01'::timestamptz, '{3}'))", [ids]);
  t.match(await revokeKey(db, revoked, 'leaked'), { status: 'revoked' });
  t.ok(await rotateKey(db, rotated, { graceMs: 0, expiresAt: null }));
  await inTransaction(database.pool, async (session) => {
    await session.query("set local lock_timeout = '100ms'");
    await session.query(`delete from api_key_scope s using api_key k
      where k.id = s.api_key_id and k.public_id = '${deleted}'`);
    await session.query(`delete from api_key where public_id = '${deleted}'`);
  });
  await holder.query('commit');
});

/** A new database without any table. */
async function bareDatabase(test: Parameters<typeof testDatabase>[0]): Promise<string> {
  const admin = setting('TEST_DATABASE_URL');
  const { url } = await testDatabase(test);
  const name = `${new URL(url).pathname.slice(1)}_bare`;
  await administer(admin, `create database "${name}" template template0`);
  test.teardown(() => administer(admin, `drop database "${name}" with (force)`));
  return siblingUrl(admin, name);
}

t.test('a new database gets its accounts first, and its tables from the migrator', async (t) => {
  const prefix = accountPrefix(t);
  const url = await bareDatabase(t);
  const admin = clientAs(t, url);
  const passwords = new Map(LOGINS.map((each) => [each, `${each}-password`]));
  await applyRoles(admin.db, prefix, passwords);
  const as = (login: (typeof LOGINS)[number]) =>
    clientAs(t, addressAs(url, roleName(prefix, login), `${login}-password`));
  const migrator = as('migrator');
  const all = await migrateUp(migrator.db);
  t.same(await migrateUp(migrator.db), []);
  await seed(migrator);
  const { rows } = await admin.pool.query(`select distinct pg_get_userbyid(relowner) as owner
    from pg_class where relnamespace = 'public'::regnamespace`);
  t.same(rows, [{ owner: roleName(prefix, 'owner') }], 'everything belongs to the owner');
  const database = { url, db: admin.db, pool: admin.pool, client: as('service') };
  const service = await serviceOn(t, database);
  t.equal((await service.post('nickel', {})).status, 200, 'and the service reads it');
  await t.rejects(as('service').pool.query('delete from price'), /permission denied/);
  await createKey(as('keys').db, { name: 'a', scopes: ['prices:*'], expiresAt: null });

  t.equal(all.length, (await migrationStatus(migrator.db)).length);
});

t.test('a later migration keeps the rights, whichever account runs it', async (t) => {
  const database = await roledDatabase(t);
  const { url: folder } = await migrationsWith(t, {
    '9998-one': { up: 'create table made_one (a integer)' },
    '9999-two': { up: 'create table made_two (a integer)' },
  });
  t.same(await migrateUp(database.db, { folder, until: '9998-one' }), ['9998-one']);
  const { rows } = await database.pool.query(
    `select relname, pg_get_userbyid(relowner) from pg_class
      where relnamespace = 'public'::regnamespace and relowner <> to_regrole($1)
     union all select proname, pg_get_userbyid(proowner) from pg_proc
      where pronamespace = 'public'::regnamespace and proowner <> to_regrole($1)`,
    [roleName(database.prefix, 'owner')],
  );
  t.same(rows, [], 'also what a superuser migrated belongs to the owner');
  t.same(await migrateUp(database.as('migrator').db, { folder }), ['9999-two']);
  await database.as('service').pool.query('select from made_one, made_two');
  await database.as('loader').pool.query("begin; select open_revision('x'); rollback");
});

t.test('doing it twice changes nothing, and takes back what was given by hand', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const state = async () =>
    (
      await database.pool.query(
        `select relname as name, relacl::text as acl from pg_class
           where relnamespace = 'public'::regnamespace
         union all select proname, proacl::text from pg_proc
           where pronamespace = 'public'::regnamespace
         union all select attname, attacl::text from pg_attribute where attacl is not null
         union all select rolname, concat(rolcanlogin, rolconnlimit,
             array(select unnest(rolconfig) as setting order by setting))
           from pg_roles where starts_with(rolname, $1)
         order by 1, 2`,
        [database.prefix],
      )
    ).rows;
  const before = await state();
  t.ok(before.length > 60);
  await applyRoles(database.db, database.prefix);
  t.same(await state(), before);
  const service = roleName(database.prefix, 'service');
  await database.pool.query(`grant insert, update (mid) on series to ${service};
    alter role ${service} reset default_transaction_read_only`);
  t.notSame(await state(), before);
  await Promise.all([1, 2, 3].map(() => applyRoles(database.db, database.prefix)));
  t.same(await state(), before, 'also when several do it at once');
});

t.test('an account that may create roles is enough, if the database is its own', async (t) => {
  const prefix = accountPrefix(t);
  const url = await bareDatabase(t);
  const name = new URL(url).pathname.slice(1);
  const owner = `${prefix}_dba`;
  await administer(
    setting('TEST_DATABASE_URL'),
    `create role "${owner}" login createrole password 'secret-of-dba'`,
    `alter database "${name}" owner to "${owner}"`,
  );
  const dba = clientAs(t, addressAs(url, owner, 'secret-of-dba'));
  await migrateUp(dba.db);
  await applyRoles(dba.db, prefix, new Map([['service', 'secret-of-service']]));
  await applyRoles(dba.db, prefix);
  const service = clientAs(t, addressAs(url, roleName(prefix, 'service'), 'secret-of-service'));
  await service.pool.query('select from price');
  await t.rejects(service.pool.query('delete from price'), /permission denied/);
  await dba.close();
  await administer(url, `drop owned by "${owner}" cascade`);
  await administer(
    setting('TEST_DATABASE_URL'),
    `reassign owned by "${owner}" to current_user`,
    `drop role "${owner}"`,
  );
});

t.test(
  'accounts without the right to make the schema published are told before the first migration',
  async (t) => {
    const prefix = accountPrefix(t);
    const url = await bareDatabase(t);
    const name = new URL(url).pathname.slice(1);
    const { db } = clientAs(t, url);
    await migrateUp(db, { until: '0009-key-use' });
    await applyRoles(db, prefix, new Map([['migrator', 'secret-of-migrator']]));
    // The accounts that the version without this schema made.
    await administer(url, `revoke create on database "${name}" from ${roleName(prefix, 'owner')}`);
    const migrator = clientAs(
      t,
      addressAs(url, roleName(prefix, 'migrator'), 'secret-of-migrator'),
    );
    await t.rejects(
      migrateUp(migrator.db),
      /nothing was changed: run ".+ db roles" of this version/,
    );
    const ran = async () =>
      (await migrationStatus(db)).filter(({ state }) => state === 'ran').map((each) => each.name);
    t.equal((await ran()).at(-1), '0009-key-use');
    await applyRoles(db, prefix);
    await migrateUp(migrator.db);
    t.equal((await ran()).length, (await migrationStatus(db)).length);
  },
);
