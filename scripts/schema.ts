import type { ClientBase } from 'pg';

/**
 * The objects of the schemas `public` and `published` in creation order, so that the text runs on an
 * empty database. The order is by `oid`, which PostgreSQL assigns in sequence.
 */
const OBJECTS = `
with mine as (
  select c.oid, c.relname, c.relkind, c.relpersistence,
    array_to_string(c.reloptions, ', ') as options
  from pg_class c
  where c.relnamespace in ('public'::regnamespace, to_regnamespace('published'))
    and c.relname !~ '^(kysely_migration|migration_file)'
), columns as (
  select a.attrelid, string_agg(
      format('  %I %s', a.attname, format_type(a.atttypid, a.atttypmod))
      || case when a.attidentity = 'a' then ' generated always as identity' else '' end
      || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
      || case when a.attnotnull then ' not null' else '' end, E',\\n' order by a.attnum) as list
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attnum > 0 and not a.attisdropped
  group by a.attrelid
), constraints as (
  select conrelid, string_agg(
      format('  constraint %I %s', conname, pg_get_constraintdef(oid)), E',\\n'
      order by position(contype in 'pufc'), conname) as list
  from pg_constraint where contype in ('p', 'u', 'f', 'c')
  group by conrelid
), objects (oid, rank, text) as (
  select m.oid, 0, concat(
      format(E'create %stable %I (\\n',
        case m.relpersistence when 'u' then 'unlogged ' end, m.relname),
      concat_ws(E',\\n', c.list, k.list), E'\\n)', E'\\nwith (' || m.options || ')', ';')
    from mine m left join columns c on c.attrelid = m.oid
      left join constraints k on k.conrelid = m.oid
    where m.relkind = 'r'
  union all
  select n.oid, 0, format(E'create schema if not exists %I;\n\ncomment on schema %I is %L;',
      nspname, nspname, obj_description(n.oid, 'pg_namespace'))
    from pg_namespace n where nspname = 'published'
  union all
  select m.oid, 0, format(E'create or replace view %s as\n%s', m.oid::regclass,
      pg_get_viewdef(m.oid, true))
    from mine m where m.relkind = 'v'
  union all
  select m.oid, 1, case when d.objsubid = 0
      then format('comment on %s %s is %L;', case m.relkind when 'v' then 'view' else 'table' end,
        m.oid::regclass, d.description)
      else format('comment on column %s.%I is %L;', m.oid::regclass, a.attname, d.description) end
    from mine m join pg_description d on d.objoid = m.oid and d.classoid = 'pg_class'::regclass
      left join pg_attribute a on a.attrelid = m.oid and a.attnum = d.objsubid
    where m.relkind in ('r', 'v')
  union all
  select m.oid, 0, pg_get_indexdef(m.oid) || ';' from mine m
    where m.relkind = 'i' and not exists (select from pg_constraint where conindid = m.oid)
  union all
  select p.oid, 0, pg_get_functiondef(p.oid) || ';' from pg_proc p
    where p.pronamespace in ('public'::regnamespace, to_regnamespace('published'))
      and p.prokind = 'f'
  union all
  select p.oid, 0, format(E'create aggregate %s (sfunc = %s, stype = %s, parallel = safe);',
      p.oid::regprocedure, g.aggtransfn::regproc, format_type(g.aggtranstype, null))
    from pg_proc p join pg_aggregate g on g.aggfnoid = p.oid
    where p.pronamespace = 'public'::regnamespace
  union all
  select p.oid, 1, format('comment on %s %s is %L;',
      case when p.prokind = 'a' then 'aggregate' else 'function' end, p.oid::regprocedure,
      d.description)
    from pg_proc p join pg_description d on d.objoid = p.oid and d.classoid = 'pg_proc'::regclass
    where p.pronamespace in ('public'::regnamespace, to_regnamespace('published'))
  union all
  select p.oid, 2, format('revoke execute on function %s from public;', p.oid::regprocedure)
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proacl is not null
      and not exists (select from aclexplode(p.proacl) where grantee = 0)
  union all
  select g.oid, 0, pg_get_triggerdef(g.oid, true) || ';' from pg_trigger g
    where not g.tgisinternal
)
select text from objects order by oid, rank, text`;

const HEAD = `-- The whole schema after all migrations, for reading: tables, functions and triggers in the order of
-- their creation. npm run generate writes this file, a test compares it, and db verify takes from it
-- what must be in force.
`;

/**
 * The schema of a migrated database as SQL for an empty one, without the tables of the migration
 * runner, accounts and grants.
 */
export async function schemaText(client: Pick<ClientBase, 'query'>): Promise<string> {
  const { rows } = await client.query<{ text: string }>(OBJECTS);
  return [HEAD, ...rows.map(({ text }) => `${text.trim()}\n`)].join('\n');
}
