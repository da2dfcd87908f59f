import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { MARKETS } from '../catalog/markets.ts';
import { SCOPES, scopeOf } from '../catalog/scopes.ts';
import { identitiesOf } from '../db/identities.ts';
import type { BrokenRow, Rule } from './rule.ts';

const FILE = new URL('../db/schema.sql', import.meta.url);

/** The lines of schema.sql that name a table, a constraint, an index, a trigger or a view. */
const NAMED = new RegExp(
  '^create (?:unlogged )?table (\\w+)|^ {2}constraint (\\w+)|' +
    '^CREATE (?:UNIQUE )?INDEX (\\w+)|^CREATE (?:CONSTRAINT )?TRIGGER (\\w+) .*? ON (\\w+) |' +
    '^create or replace view (\\S+)',
  'gm',
);

/** The constraints, indexes, triggers and views that schema.sql names. */
export async function recordedNames(): Promise<string[]> {
  let inTable = '';
  return [...(await readFile(FILE, 'utf8')).matchAll(NAMED)].flatMap(
    ([, table, constraint, index, trigger, of, view]) => {
      inTable = table ?? inTable;
      if (constraint) return [`constraint ${inTable}.${constraint}`];
      if (index) return [`index ${index}`];
      if (view) return [`view ${view}`];
      return trigger ? [`trigger ${of}.${trigger}`] : [];
    },
  );
}

const FOUND = `
with own as (select oid, relname from pg_class where relnamespace = 'public'::regnamespace)
select format('constraint %s.%s', relname, conname) as what,
    convalidated and not exists (
      select from pg_trigger where tgconstraint = c.oid and tgenabled <> 'O') as "isInForce"
  from own join pg_constraint c on conrelid = own.oid
union all
select format('index %s', relname), indisvalid and indisready and indislive
  from own join pg_index on indexrelid = own.oid
union all
select format('trigger %s.%s', relname, tgname), tgenabled = 'O'
  from own join pg_trigger on tgrelid = own.oid
union all
select format('view published.%s', relname), true
  from pg_class where relnamespace = to_regnamespace('published') and relkind = 'v'`;

/** Objects of schema.sql that are not in force in this database. */
async function notInForce(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const { rows } = await driver.query<{ what: string; isInForce: boolean }>(FOUND);
  const found = new Map(rows.map(({ what, isInForce }) => [what, isInForce]));
  return (await recordedNames())
    .filter((what) => !found.get(what))
    .map((what) => ({
      what,
      problem: found.has(what) ? 'is disabled or not valid' : 'is missing',
    }));
}

async function wrongMarkets(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const { rows } = await driver.query<{ slug: string | null; scope: string | null }>(
    'select slug, scope from market full join access_scope on market_id = market.id',
  );
  const slugs = new Set(rows.map(({ slug }) => slug));
  const scopes = new Map(rows.map(({ slug, scope }) => [scope, slug]));
  const expected = new Map<string, string | null>([
    ...SCOPES.map((scope) => [scope, null] as const),
    ...MARKETS.map(({ slug }) => [scopeOf(slug), slug] as const),
  ]);
  const known = new Set<string | null>([null, ...MARKETS.map(({ slug }) => slug)]);
  return [
    ...MARKETS.filter(({ slug }) => !slugs.has(slug)).map(({ slug }) => ({ missing: slug })),
    ...[...slugs].filter((slug) => !known.has(slug)).map((slug) => ({ unknown: slug })),
    ...[...expected]
      .filter(([scope, slug]) => scopes.get(scope) !== slug)
      .map(([scope, slug]) => ({ scope, market: scopes.get(scope) ?? null, expected: slug })),
    ...[...scopes.keys()]
      .filter((scope) => scope !== null && !expected.has(scope))
      .map((scope) => ({ unknown: scope })),
  ];
}

async function usedIds(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const broken: BrokenRow[] = [];
  for (const { table, sequence, isReadable, maxId } of await identitiesOf(driver)) {
    if (!isReadable) {
      broken.push({
        table,
        problem: 'this account may not read the sequence of the table: run db roles',
      });
      continue;
    }
    const { rows: used } = await driver.query(
      `select '${table}' as table, used, last from (
        select ${maxId} as used,
          coalesce(pg_sequence_last_value('${sequence}'::regclass), 0) as last) as ids
      where used > last`,
    );
    broken.push(...used);
  }
  return broken;
}

/**
 * Rights on views, functions and tables that differ from those of `roles.sql`. The accounts have
 * the prefix of the owner of the tables.
 */
const WRONG_RIGHTS = `
with owner as (
  select relowner as oid, substring(pg_get_userbyid(relowner) from '^([a-z][a-z0-9_]*)_owner$')
    as prefix
  from pg_class where oid = to_regclass('public.market')),
reader as (
  select r.oid, r.rolname from owner join pg_roles r on r.rolname = prefix || '_reader'),
relations as (
  select oid, relnamespace::regnamespace::text as schema, relname, relkind, relowner, relacl
  from pg_class
  where relnamespace in ('public'::regnamespace, to_regnamespace('published'))
    and relkind in ('r', 'p', 'v', 'm')),
rights as (
  select schema, relname, relkind, relowner, grantee, privilege_type
  from relations cross join lateral aclexplode(relacl)
  union all
  select schema, relname || '.' || attname, relkind, relowner, grantee, privilege_type
  from relations join pg_attribute on attrelid = relations.oid
    cross join lateral aclexplode(attacl))
select format('%s.%s', schema, relname) as what, grantee::regrole::text as account,
    privilege_type as "right", 'is not granted by roles.sql' as problem
  from rights left join reader on true
  where grantee <> relowner
    and (schema = 'published'
        and (grantee is distinct from reader.oid or privilege_type <> 'SELECT')
      or schema = 'public' and grantee = reader.oid)
union all
select format('published.%s', relname), rolname, 'SELECT', 'is missing: run db roles'
  from relations, reader
  where schema = 'published' and not has_table_privilege(reader.oid, relations.oid, 'select')
union all
select 'schema published', rolname, 'USAGE', 'is missing: run db roles'
  from reader
  where to_regnamespace('published') is not null
    and not has_schema_privilege(reader.oid, 'published', 'usage')
union all
select p.oid::regprocedure::text, rolname, 'EXECUTE', 'is missing: run db roles'
  from pg_proc p, reader
  where pronamespace = to_regnamespace('published')
    and not has_function_privilege(reader.oid, p.oid, 'execute')
union all
select rolname, rolname, m.roleid::regrole::text, 'is a member of another account'
  from reader join pg_auth_members m on m.member = reader.oid`;

/** Rules of the schema and the catalog. */
export const SCHEMA_RULES: readonly Rule[] = [
  {
    name: 'in-force',
    meaning:
      'Every constraint, index, trigger and view of this version (src/db/schema.sql) exists, is ' +
      'valid and enabled.',
    broken: notInForce,
  },
  {
    name: 'reader-confined',
    meaning:
      'The account for readers of SQL reads each view of the schema published, if the ' +
      'database has accounts. It changes nothing, and has no right on a table. No other account ' +
      'but the owner has a right on a view.',
    broken: WRONG_RIGHTS,
  },
  {
    name: 'catalog-written',
    meaning: 'The markets and scopes are those of the catalog.',
    broken: wrongMarkets,
  },
  {
    name: 'ids-unused',
    meaning: 'The next id of each table was never used before.',
    broken: usedIds,
  },
];
