import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { MARKETS } from '../catalog/markets.ts';
import { SCOPES, scopeOf } from '../catalog/scopes.ts';
import { identitiesOf } from '../db/identities.ts';
import type { BrokenRow, Rule } from './rule.ts';

const FILE = new URL('./in-force.txt', import.meta.url);

/** Tables of the project, without those of extensions and of the migration runner. */
const OWN_TABLES = `
  select c.oid, c.relname, c.relpersistence, c.relrowsecurity from pg_class c
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
    and relname not like 'kysely%'
    and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')`;

/** The firing mode of a trigger, unless it is the default. */
const STATE = `case tgenabled when 'O' then '' when 'D' then ' disabled'
  when 'A' then ' always' else ' replica' end`;

/**
 * The definitions of the schema, one per line: kind and name, a colon, the definition. NOT NULL is
 * part of the column, because only newer servers name these constraints. Function bodies are
 * hashed, if the server stores their source text.
 */
const LINES = `
with own as (${OWN_TABLES})
select line from (
  select 'table ' || relname || ':' || case relpersistence when 'p' then '' else ' unlogged' end
    || case when relrowsecurity then ' row security' else '' end from own
  union all
  select format('column %s.%s: %s', relname, attname, format_type(atttypid, atttypmod))
    || case when attnotnull then ' not null' else '' end
    || case attidentity when 'a' then ' always identity' when 'd' then ' identity' else '' end
    || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
    from own join pg_attribute a on attrelid = own.oid and attnum > 0 and not attisdropped
      left join pg_attrdef on adrelid = attrelid and adnum = attnum
  union all
  select format('constraint %s.%s: %s', relname, conname, pg_get_constraintdef(c.oid))
    || case when exists (select from pg_trigger where tgconstraint = c.oid and tgenabled <> 'O')
      then ' disabled' else '' end
    from own join pg_constraint c on conrelid = own.oid
    where contype not in ('n', 't')
  union all
  select format('index %s: %s', i.indexrelid::regclass, pg_get_indexdef(i.indexrelid))
    || case when indisvalid and indisready and indislive then '' else ' invalid' end
    from own join pg_index i on indrelid = own.oid
  union all
  select format('trigger %s.%s: %s', relname, tgname, pg_get_triggerdef(t.oid)) || ${STATE}
    from own join pg_trigger t on tgrelid = own.oid and not tgisinternal
  union all
  select format('rule %s.%s: %s', relname, rulename, pg_get_ruledef(r.oid))
    from own join pg_rewrite r on ev_class = own.oid
  union all
  select format('function %s(%s): %s', proname, pg_get_function_identity_arguments(p.oid),
      pg_get_function_result(p.oid))
    || case provolatile when 'i' then ' immutable' when 's' then ' stable' else '' end
    || case when prosecdef then ' security definer' else '' end
    || case when prosecdef and exists (
        select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)
      then ' for everybody' else '' end
    || coalesce(' set ' || array_to_string(proconfig, ' set '), '')
    || case when prosrc = '' then '' else ' sha256:'
      || left(encode(sha256(convert_to(prosrc, 'UTF8')), 'hex'), 16) end
    from pg_proc p
    where pronamespace = 'public'::regnamespace
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
) as lines (line) order by line collate "C"`;

/** Lists the definitions of this database, one per line. */
export async function schemaDefinitions(driver: pg.ClientBase): Promise<string[]> {
  // PostgreSQL qualifies names outside of the search path, and writes intervals in this style.
  await driver.query('set local search_path = public, pg_temp');
  await driver.query('set local intervalstyle = postgres');
  const { rows } = await driver.query<{ line: string }>(LINES);
  // PostgreSQL writes an expression with CASE on several lines.
  return rows.map(({ line }) => line.replace(/\s*\n\s*/g, ' '));
}

/** Splits lines into name and definition. */
const byName = (lines: readonly string[]): Map<string, string> =>
  new Map(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1).trim()];
    }),
  );

/** Removes parentheses: a restored dump groups `a or b or c` differently. */
const plain = (definition: string): string => definition.replace(/[()]/g, '');

/** Unrecorded objects that would change which writes are allowed. Other indexes are allowed. */
const MAY_NOT_BE_ADDED = /^(constraint|trigger|rule) /;

/** The differences from the recorded schema of this version. */
export async function schemaDifferences(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const recorded = byName((await readFile(FILE, 'utf8')).trim().split('\n'));
  const found = byName(await schemaDefinitions(driver));
  const changed = [...recorded].flatMap(([what, expected]): BrokenRow[] => {
    const definition = found.get(what);
    if (definition === undefined) return [{ what, problem: 'is missing' }];
    return plain(definition) === plain(expected)
      ? []
      : [{ what, problem: 'is different', recorded: expected, found: definition }];
  });
  const added = [...found].flatMap(([what, definition]): BrokenRow[] =>
    recorded.has(what) || !MAY_NOT_BE_ADDED.test(what)
      ? []
      : [{ what, problem: 'is not of this version', found: definition }],
  );
  return [...changed, ...added];
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

/** Rules of the schema and the catalog. */
export const SCHEMA_RULES: readonly Rule[] = [
  {
    name: 'in-force',
    meaning:
      'Every table, column, constraint, index, trigger and function of this version exists, is ' +
      'valid and enabled. There are no other constraints, triggers or rules.',
    broken: schemaDifferences,
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
