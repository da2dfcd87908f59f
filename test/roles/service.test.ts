import { readFile } from 'node:fs/promises';
import t from 'tap';
import { parse } from 'yaml';
import { MARKETS } from '../../src/catalog/markets.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';

const OPENAPI = new URL('../../openapi.yaml', import.meta.url);

const WHOLE = {
  options: {
    includeSeries: true,
    includeSummary: true,
    currency: 'EUR',
    unitOfMeasure: 'lb',
  },
};

t.test('every address answers with the account that only reads', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const service = await serviceOn(t, { ...database, client: database.as('service') });
  const ready = () => service.app.inject({ method: 'GET', url: '/ready' });
  await until(
    'the service has checked its database',
    async () => (await ready()).statusCode === 200,
  );
  const { paths } = parse(await readFile(OPENAPI, 'utf8'));
  for (const [url, methods] of Object.entries(paths)) {
    for (const method of Object.keys(methods as object)) {
      if (method === 'post') continue;
      const headers = { 'x-api-key': service.key };
      const answer = await service.app.inject({ method: 'GET', url, headers });
      t.ok(answer.statusCode < 500, `${method} ${url} ${answer.statusCode}`);
    }
  }
  const instant = new Date(Date.now() - 1_000).toISOString();
  for (const { slug } of MARKETS) {
    t.equal((await service.post(slug, WHOLE)).status, 200, slug);
    const past = { options: { ...WHOLE.options, asOf: instant } };
    t.equal((await service.post(slug, past)).status, 200, `${slug} in the past`);
  }
  const rates = '/v3/reference/rates?base=EUR&quote=USD';
  for (const url of [rates, '/v3/search?q=nickel']) {
    t.equal((await service.request({ method: 'GET', url })).status, 200, url);
  }
  t.match((await service.request({ method: 'GET', url: '/ready' })).json.checks, {
    database: 'ok',
    schema: 'ok',
  });
});

/** Ways to write to a database, in whatever place. */
const WRITING = [
  "insert into series (price_id, date, mid, published_at) values (1, '2020-01-01', 1, now())",
  'update series set mid = mid + 1',
  'delete from series',
  'truncate series',
  'copy series from stdin',
  'update api_key set revoked_at = null, revoked_reason = null',
  'delete from revision',
  "select open_revision('forged')",
  'select number_changes(1)',
  'select from series for update',
  'begin; lock table series in share mode',
  'alter table series disable trigger all',
  'create table mine (a integer)',
  'create temporary table mine (a integer)',
  'create schema mine',
  'create view mine as select 1',
  'create function mine() returns integer language sql as $$ select 1 $$',
  'select 1 as a into mine',
  'create trigger mine before insert on series execute function series_keep()',
  "select lo_from_bytea(0, 'mine')",
  'select lo_create(0)',
  'select lo_creat(-1)',
  "select nextval('price_id_seq')",
  "select setval('price_id_seq', 1)",
  'analyze series',
  'vacuum series',
  'reindex table series',
  "comment on table series is 'mine'",
  'grant select on series to public',
  'drop table series',
  'set session_replication_role = replica',
  "copy (select 1) to program 'true'",
  "copy (select 1) to '/dev/null'",
  'create role mine',
  'create database mine',
];

/** The wordings of this error in different versions of PostgreSQL. */
const REFUSED =
  /permission denied|must be |no privileges were granted|only table or database owner/;

t.test('the service writes nothing at all, also when it switches its own lock off', async (t) => {
  const database = await roledDatabase(t, { seeded: true });
  const { pool } = database.as('service');
  await t.rejects(
    pool.query('begin; set local default_transaction_read_only = on; update series set mid = 1'),
    /permission denied/,
  );
  const client = await pool.connect();
  t.teardown(() => client.release(true));
  await client.query('rollback');
  await client.query('set default_transaction_read_only = off');
  await client.query('set session characteristics as transaction read write');
  const notices: string[] = [];
  client.on('notice', ({ message }) => notices.push(String(message)));
  for (const statement of WRITING) {
    const outcome = await client.query(statement).then(
      () => notices.splice(0).join() || 'nothing stopped it',
      (error: Error) => error.message,
    );
    await client.query('rollback');
    t.match(outcome, REFUSED, statement);
  }
});

t.test('the sessions of the service have limits of their own', async (t) => {
  const database = await roledDatabase(t);
  const { rows } = await database.pool.query<{ setting: string }>(
    'select unnest(rolconfig) as setting from pg_roles where rolname = $1 order by 1',
    [`${database.prefix}_service`],
  );
  t.same(
    rows.map(({ setting }) => setting),
    [
      'client_connection_check_interval=200ms',
      'default_transaction_read_only=on',
      'idle_in_transaction_session_timeout=10s',
      'idle_session_timeout=1h',
      'lock_timeout=1s',
      'search_path=public, pg_temp',
      'statement_timeout=8s',
      'tcp_keepalives_count=3',
      'tcp_keepalives_idle=10s',
      'tcp_keepalives_interval=5s',
    ],
  );
});
