import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { MARKETS } from '../catalog/markets.ts';
import { SCOPES, scopeOf } from '../catalog/scopes.ts';
import { identitiesOf } from '../db/identities.ts';
import type { BrokenRow, Rule } from './rule.ts';

const FILE = new URL('../db/schema.sql', import.meta.url);

/** The lines of schema.sql that name a table, a constraint, an index or a trigger. */
const NAMED = new RegExp(
  '^create (?:unlogged )?table (\\w+)|^ {2}constraint (\\w+)|' +
    '^CREATE (?:UNIQUE )?INDEX (\\w+)|^CREATE (?:CONSTRAINT )?TRIGGER (\\w+) .*? ON (\\w+) ',
  'gm',
);

/** The constraints, indexes and triggers that schema.sql names. */
export async function recordedNames(): Promise<string[]> {
  let inTable = '';
  return [...(await readFile(FILE, 'utf8')).matchAll(NAMED)].flatMap(
    ([, table, constraint, index, trigger, of]) => {
      inTable = table ?? inTable;
      if (constraint) return [`constraint ${inTable}.${constraint}`];
      if (index) return [`index ${index}`];
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
  from own join pg_trigger on tgrelid = own.oid`;

/** The constraints, indexes and triggers of schema.sql that are not in force in this database. */
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

/** Rules of the schema and the catalog. */
export const SCHEMA_RULES: readonly Rule[] = [
  {
    name: 'in-force',
    meaning:
      'Every constraint, index and trigger of this version (src/db/schema.sql) exists, is valid ' +
      'and enabled.',
    broken: notInForce,
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
