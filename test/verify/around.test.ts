import t from 'tap';
import { applyRoles, LOGINS, roleName } from '../../src/db/migrate/roles.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { administer } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import { clientAs, roledDatabase } from '../support/database/roles.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import { prices } from '../support/process/programs.ts';

const verified = async (client: Parameters<typeof verify>[0]) => {
  const { notices, rules } = await verify(client, RULES, () => {});
  return { notices, broken: rules.filter(({ count }) => count > 0) };
};

t.test(
  'a table of the installation beside those of the service breaks neither db verify nor db roles',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const { prefix, url, db } = database;
    const owner = `${prefix}_guest`;
    await administer(url, `create role "${owner}" login`);
    t.teardown(() => administer(url, `drop owned by "${owner}"; drop role "${owner}"`));
    await administer(
      url,
      `grant create, usage on schema public to "${owner}"`,
      `set role "${owner}"; create table note (id bigint generated always as identity, text text)`,
    );
    const service = database.as('service');
    t.same(await verified(service), { notices: [], broken: [] });
    // Without a superuser, as on a managed server: the table of another account cannot be granted.
    const managed = `${prefix}_admin`;
    await administer(
      url,
      `create role "${managed}" login createrole password 'a-password'`,
      `grant "${roleName(prefix, 'owner')}" to "${managed}" with admin option`,
    );
    t.teardown(() => administer(url, `drop owned by "${managed}"; drop role "${managed}"`));
    const address = new URL(url);
    address.username = managed;
    address.password = 'a-password';
    for (const login of LOGINS) {
      await administer(url, `grant "${roleName(prefix, login)}" to "${managed}" with admin option`);
    }
    await applyRoles(clientAs(t, address.href).db, prefix);
    await applyRoles(db, prefix);
    t.same(await verified(service), { notices: [], broken: [] });
  },
);

t.test('db verify names each right that an account of the service lacks', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { prefix, url, client } = database;
  const name = (login: 'service' | 'loader' | 'keys' | 'usage') => roleName(prefix, login);
  await administer(
    url,
    `revoke select on price from "${name('service')}"`,
    `revoke update on series from "${name('loader')}"`,
    `revoke update (revoked_at) on api_key from "${name('keys')}"`,
    `revoke execute on function note_used from "${name('usage')}"`,
    `revoke connect on database "${new URL(url).pathname.slice(1)}" from "${name('usage')}"`,
  );
  const { broken } = await verified(client);
  t.match(broken, [
    {
      rule: 'rights-granted',
      count: 5,
      rows: [
        { account: name('usage'), lacks: 'connect to the database' },
        { account: name('usage'), lacks: 'execute note_used(text[],timestamp with time zone[])' },
        { account: name('loader'), lacks: 'update on series' },
        { account: name('keys'), lacks: 'update (revoked_at) on api_key' },
        { account: name('service'), lacks: 'select on price' },
      ],
    },
  ]);
  await applyRoles(database.db, prefix);
  t.same((await verified(client)).broken, []);
});

t.test(
  'a clock of the database that jumped back is logged and shown, with its effect on asOf',
  async (t) => {
    const database = await roledDatabase(t, { seeded: true });
    const { pool, url } = database;
    const DATABASE_URL = database.urlOf('service');
    const service = await startServiceProcess(t, database, { DATABASE_URL });
    // The newest revision is dated by a clock that was an hour ahead.
    await inTransaction(pool, async (client) => {
      await client.query('set local session_replication_role = replica');
      await client.query(
        `update revision set committed_at = now() + interval '1 hour'
        where number = (select max(number) from revision)`,
      );
    });
    const commit = (client: { query(text: string): Promise<unknown> }) =>
      client.query(
        `select open_revision('after the jump');
        update price set name = name || ' again' where id = (select min(id) from price)`,
      );
    await inTransaction(pool, commit);
    const line = /the clock of the database is (3599|3600) s behind .*An asOf before/;
    t.match(await service.running.until('stderr', line), line);
    const { code, stdout } = await prices(t, { DATABASE_URL: url }, 'db', 'verify');
    t.equal(code, 0);
    t.match(stdout, /^Note: the clock of the database is 3\d{3} s behind .*without asOf do\.\n/);
    t.match(
      stdout,
      /\nNote: 1 revision is dated a microsecond after .*, the last of them number \d+:/,
    );
  },
);
