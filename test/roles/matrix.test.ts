import type pg from 'pg';
import t from 'tap';
import { LOGINS, type Login, roleName } from '../../src/db/migrate/roles.ts';
import { roledDatabase } from '../support/database/roles.ts';

/** The tables that loads write. Triggers and migrations write the others, if anything does. */
const DATA = ['currency', 'dimension_value', 'fx_rate', 'price', 'product', 'series'];
const REFERENCE_FILES = ['calendar', 'holiday_list', 'price_calendar', 'vat_rate'];
const LEDGER = ['load_batch', 'load_coverage'];

/** Every right to write, by account: tables, or `table.column` where it is not the whole table. */
const WRITES: Readonly<Record<Login, Readonly<Record<string, readonly string[]>>>> = {
  // The migrator has no right of its own: it acts as the owner.
  migrator: {},
  loader: {
    insert: [...DATA, ...REFERENCE_FILES, ...LEDGER].sort(),
    // The right to lock write_lock, which has no columns.
    update: [...DATA, ...REFERENCE_FILES, 'write_lock'].sort(),
    delete: ['fx_rate', 'series', ...REFERENCE_FILES].sort(),
  },
  usage: {},
  service: {},
  reader: {},
  keys: {
    insert: [
      'api_key.concurrent',
      'api_key.digest',
      'api_key.digest_alg',
      'api_key.expires_at',
      'api_key.name',
      'api_key.owner',
      'api_key.public_id',
      'api_key.rate_burst',
      'api_key.rate_per_minute',
      'api_key_scope',
      ...['api_key_id', 'codes', 'markets', 'operations', 'position', 'public_id', 'url'].map(
        (column) => `webhook.${column}`,
      ),
      ...['content', 'type', 'webhook_id'].map((column) => `webhook_message.${column}`),
      ...['secret', 'webhook_id'].map((column) => `webhook_secret.${column}`),
    ],
    update: [
      'api_key.concurrent',
      'api_key.expires_at',
      'api_key.name',
      'api_key.owner',
      'api_key.rate_burst',
      'api_key.rate_per_minute',
      'api_key.replaced_by',
      'api_key.revoked_at',
      'api_key.revoked_reason',
      'webhook_secret.expires_at',
    ],
    delete: ['webhook'],
  },
  webhooks: {
    insert: ['webhook_count', 'webhook_late', 'webhook_message'],
    update: [
      ...[
        'delivered_at',
        'disabled_at',
        'disabled_reason',
        'failing_since',
        'paused_until',
        'position',
      ].map((column) => `webhook.${column}`),
      ...['webhook_count', 'webhook_message'],
    ],
    delete: ['webhook_late', 'webhook_message'],
  },
};

/** Receivers and secrets, which the service does not read. */
const OF_WEBHOOKS = ['webhook', 'webhook_secret'];

/** Rights on whole tables, and beside them rights on single columns, as the server has them. */
async function rightsOf(
  pool: pg.Pool,
  role: string,
  kinds: readonly string[],
): Promise<Record<string, string[]>> {
  const { rows } = await pool.query<{ kind: string; object: string }>(
    `with tables as (
       select oid, relname from pg_class
       where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')
     ), whole as (
       select kind, oid, relname::text as object from tables, unnest($2::text[]) as kind
       where has_table_privilege($1, oid, kind)
     )
     select kind, object from whole
     union all
     select k.kind, relname || '.' || attname from tables
       join pg_attribute on attrelid = tables.oid and attnum > 0 and not attisdropped,
       unnest($2::text[]) as k (kind)
     where k.kind in ('select', 'insert', 'update')
       and has_column_privilege($1, tables.oid, attnum, k.kind)
       and not exists (select from whole where whole.oid = tables.oid and whole.kind = k.kind)
     order by 1, 2`,
    [role, kinds],
  );
  const found: Record<string, string[]> = {};
  for (const { kind, object } of rows) {
    found[kind] = [...(found[kind] ?? []), object];
  }
  return found;
}

t.test('each account may write what stands in the matrix, and nothing else', async (t) => {
  const { pool, prefix } = await roledDatabase(t);
  const kinds = ['insert', 'update', 'delete', 'truncate', 'references', 'trigger'];
  for (const login of LOGINS) {
    // The migrator has every right as a member of the owner; its own grants are checked below.
    if (login === 'migrator') continue;
    const role = roleName(prefix, login);
    t.same(await rightsOf(pool, role, kinds), WRITES[login], login);
    const { rows } = await pool.query(
      `select rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
         has_schema_privilege(rolname, 'public', 'create') as makes,
         has_database_privilege(rolname, current_database(), 'create') as schemas,
         has_database_privilege(rolname, current_database(), 'temporary') as temporary,
         exists (select from pg_auth_members where member = pg_roles.oid) as member,
         exists (select from pg_class where relowner = pg_roles.oid) as owns
       from pg_roles where rolname = $1`,
      [role],
    );
    const rights = Object.entries(rows[0]).filter(([, value]) => value);
    t.same(rights, login === 'loader' ? [['temporary', true]] : [], `${login} is nothing more`);
  }
});

t.test('keys and prices are read by those who need them', async (t) => {
  const { pool, prefix } = await roledDatabase(t);
  const { rows } = await pool.query<{ name: string }>(`select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')
    order by relname`);
  const all = rows.map(({ name }) => name);
  const read = async (login: Login) =>
    (await rightsOf(pool, roleName(prefix, login), ['select']))['select'];
  t.same(
    await read('service'),
    [
      ...all.filter((each) => !OF_WEBHOOKS.includes(each)),
      ...['disabled_at', 'id', 'position'].map((column) => `webhook.${column}`),
      'webhook_secret.id',
    ].sort(),
    'the service reads everything but receivers and secrets, later tables too',
  );
  const keys = ['api_key', 'api_key_scope', 'key_audit', 'key_use', 'rate_usage'];
  const locks = ['kysely_migration_lock', 'seal_lock', 'write_lock'];
  const bells = all.filter((each) => each.startsWith('webhook'));
  const secret = [...keys, ...bells, ...locks, 'migration_file'];
  t.same(
    await read('loader'),
    all.filter((each) => !secret.includes(each)),
    'the loader sees no key',
  );
  t.same(await read('usage'), ['revision', 'service.epoch']);
  t.same(
    await read('keys'),
    [
      'access_scope',
      'api_key',
      'api_key_scope',
      'key_audit',
      'key_use',
      'kysely_migration',
      'market',
      'revision.number',
      'webhook',
      'webhook_message',
      ...['created_at', 'expires_at', 'id', 'webhook_id'].map((each) => `webhook_secret.${each}`),
    ],
    'the account for keys reads no price, and no secret',
  );
  const reading = (await read('webhooks')) ?? [];
  t.ok(reading.includes('webhook_secret') && reading.includes('series'));
  t.notOk(reading.some((each) => /digest|key_audit|key_use|owner/.test(each)));
  t.equal(await read('reader'), undefined, 'the account for SQL reads no table');
});

t.test('functions with the rights of the owner are not executable by public', async (t) => {
  const { pool, prefix } = await roledDatabase(t);
  const { rows } = await pool.query<{ name: string; path: string; accounts: string[] }>(
    `select proname as name, array_to_string(proconfig, ' ') as path,
       array(select rolname::text from pg_roles where starts_with(rolname, $1)
         and has_function_privilege(rolname, p.oid, 'execute')
         and rolname not in ($1 || '_owner', $1 || '_migrator')) as accounts
     from pg_proc p where pronamespace = 'public'::regnamespace and prosecdef order by proname`,
    [prefix],
  );
  t.ok(rows.length > 10);
  const open = new Map<string, Login>([
    ['open_revision', 'loader'],
    ['note_used', 'usage'],
  ]);
  for (const { name, path, accounts } of rows) {
    t.match(path, /^search_path=pg_catalog, public, pg_temp/, name);
    const login = open.get(name);
    t.same(accounts, login ? [roleName(prefix, login)] : [], name);
  }
});

t.test('no temporary table stands in for a real one inside a function', async (t) => {
  const { pool } = await roledDatabase(t);
  const { rows } = await pool.query<{ name: string }>(`select proname as name from pg_proc
    where pronamespace = 'public'::regnamespace
      and prolang = (select oid from pg_language where lanname = 'plpgsql')
      and not coalesce(array_to_string(proconfig, ' ') ~ 'search_path=pg_catalog, public, pg_temp',
        false)
    order by proname`);
  // These read no table, name it with its schema, or run only where one of the others calls them.
  const harmless = [
    'needed_revision',
    'refuse_after_seal',
    'refuse_change',
    'refuse_new_identity',
    'refuse_new_key',
    'refuse_without_revision',
    'require_commit',
    'set_market_of_segment',
    'stamp_revision',
  ];
  t.same(
    rows.map(({ name }) => name),
    harmless,
  );
});
