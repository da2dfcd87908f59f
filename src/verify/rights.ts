import type pg from 'pg';
import { LOGINS, neededRights, roleName } from '../db/migrate/roles.ts';
import { ownTables, PRIVATE_TABLES } from '../db/own-tables.ts';
import type { BrokenRow, Rule } from './rule.ts';

/**
 * The prefix of the accounts that have rights on the tables: by the owner, else by a grant, as in a
 * database that was restored with `--no-owner`. Null if no account has any.
 */
const PREFIX = `
select substring(name from '^([a-z][a-z0-9_]*)_(owner|service)$') as prefix
from (
  select pg_get_userbyid(relowner)::text as name, 1 as place
    from pg_class where oid = to_regclass('public.market')
  union all
  select pg_get_userbyid(grantee)::text, 2
    from pg_class, aclexplode(relacl) where oid = to_regclass('public.market')) as named
where name ~ '_(owner|service)$' order by place limit 1`;

/** The prefix of the accounts of this database; null if `db roles` never ran on it. */
export async function accountPrefix(driver: pg.ClientBase): Promise<string | null> {
  const { rows } = await driver.query<{ prefix: string }>(PREFIX);
  return rows[0]?.prefix ?? null;
}

/** A right that an account needs, as an SQL condition. */
interface Needed {
  readonly account: string;
  readonly right: string;
  readonly condition: string;
}

/** The conditions for the rights on tables, which are those that `db roles` grants. */
async function tableRights(prefix: string): Promise<Needed[]> {
  const service = roleName(prefix, 'service');
  const tables = (await ownTables()).filter((table) => !PRIVATE_TABLES.includes(table));
  const reading = tables.map((table) => ({
    account: service,
    privilege: 'select',
    columns: [],
    table,
  }));
  return [...(await neededRights(prefix)), ...reading].flatMap(
    ({ account, privilege, columns, table }) => {
      const of = `'${account}', to_regclass('public.${table}')`;
      const whole = {
        account,
        right: `${privilege} on ${table}`,
        condition: `has_table_privilege(${of}, '${privilege}')`,
      };
      if (columns.length === 0) return [whole];
      return columns.map((column) => ({
        account,
        right: `${privilege} (${column}) on ${table}`,
        condition: `has_column_privilege(${of}, '${column}', '${privilege}')`,
      }));
    },
  );
}

/** Rights on the database, the schema and functions. */
function otherRights(prefix: string): Needed[] {
  const [owner, loader] = [roleName(prefix, 'owner'), roleName(prefix, 'loader')];
  const executing = (account: string, name: string): Needed => ({
    account,
    right: `execute ${name}`,
    condition: `has_function_privilege('${account}', to_regprocedure('public.${name}'), 'execute')`,
  });
  return [
    ...LOGINS.map((login) => {
      const account = roleName(prefix, login);
      return {
        account,
        right: 'connect to the database',
        condition: `has_database_privilege('${account}', current_database(), 'connect')`,
      };
    }),
    // The reader needs the schema published only.
    ...LOGINS.filter((login) => login !== 'reader').map((login) => {
      const account = roleName(prefix, login);
      return {
        account,
        right: 'usage of the schema public',
        condition: `has_schema_privilege('${account}', 'public', 'usage')`,
      };
    }),
    {
      account: loader,
      right: 'temporary tables',
      condition: `has_database_privilege('${loader}', current_database(), 'temporary')`,
    },
    {
      account: owner,
      right: 'ownership of the tables',
      condition: `(select relowner from pg_class where oid = to_regclass('public.market'))
        = '${owner}'::regrole`,
    },
    {
      account: roleName(prefix, 'migrator'),
      right: `to act as ${owner}`,
      condition: `pg_has_role('${roleName(prefix, 'migrator')}', '${owner}', 'member')`,
    },
    executing(loader, 'open_revision(text)'),
    executing(roleName(prefix, 'usage'), 'note_used(text[],timestamp with time zone[])'),
    {
      account: loader,
      right: 'usage of load_batch_id_seq',
      condition: `has_sequence_privilege('${loader}',
        to_regclass('public.load_batch_id_seq'), 'usage')`,
    },
  ];
}

/** The rights that accounts of `db roles` lack. A restored database may have lost some. */
async function missingRights(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const prefix = await accountPrefix(driver);
  if (prefix === null) return [];
  const accounts = (['owner', ...LOGINS] as const).map((login) => roleName(prefix, login));
  const { rows: there } = await driver.query<{ rolname: string }>(
    'select rolname from pg_roles where rolname = any($1)',
    [accounts],
  );
  const known = new Set(there.map(({ rolname }) => rolname));
  const gone = accounts
    .filter((account) => !known.has(account))
    .map((account) => ({ account, lacks: 'everything: there is no such account' }));
  if (gone.length > 0) return gone;
  const needed = [...otherRights(prefix), ...(await tableRights(prefix))];
  // A right on an object that is missing is another rule.
  const { rows } = await driver.query<{ missing: number[] }>(
    `select array(select at from (values ${needed
      .map(({ condition }, at) => `(${at}, coalesce(${condition}, true))`)
      .join(', ')}) as rights (at, granted) where not granted order by at) as missing`,
  );
  return (rows[0]?.missing ?? []).flatMap((at) => {
    const { account, right } = needed[at] as Needed;
    return { account, lacks: right };
  });
}

/** Rules of the accounts. */
export const RIGHT_RULES: readonly Rule[] = [
  {
    name: 'rights-granted',
    meaning:
      'Each account of `db roles` has the rights that it needs. `db roles` grants them again.',
    broken: missingRights,
  },
];
