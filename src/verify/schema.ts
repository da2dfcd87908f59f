import type pg from 'pg';
import { MARKETS } from '../catalog/markets.ts';
import { SCOPES, scopeOf } from '../catalog/scopes.ts';
import { notInForce } from './in-force.ts';
import type { Broken, Rule } from './rule.ts';

async function strangeMarkets(driver: pg.ClientBase): Promise<Broken[]> {
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

const IDENTITIES = `
  select c.relname as table, a.attname as column, s.sequence::text,
    has_sequence_privilege(s.sequence, 'select') as "isReadable"
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
    cross join lateral (select pg_get_serial_sequence(quote_ident(relname), attname)::regclass
      as sequence) as s
  where c.relnamespace = 'public'::regnamespace order by 1, 2`;

/** Where else the ids of a table live on. */
const REMEMBERED: Readonly<Record<string, readonly string[]>> = {
  price: ['change_segment.price_id', 'price_history.id'],
  ...Object.fromEntries(
    ['currency', 'unit_of_measure', 'dimension_value', 'product'].map((table) => [
      table,
      [`${table}_history.id`],
    ]),
  ),
};

async function usedIds(driver: pg.ClientBase): Promise<Broken[]> {
  const { rows } = await driver.query<{
    table: string;
    column: string;
    sequence: string;
    isReadable: boolean;
  }>(IDENTITIES);
  const broken: Broken[] = [];
  for (const { table, column, sequence, isReadable } of rows) {
    if (!isReadable) {
      broken.push({ table, problem: 'this account may not read its sequence: run db roles' });
      continue;
    }
    const places = [`${table}.${column}`, ...(REMEMBERED[table] ?? [])].map((place) => {
      const [from, name] = place.split('.');
      return `(select max(${name}) from ${from})`;
    });
    const { rows: used } = await driver.query(
      `select '${table}' as table, used, last from (
        select greatest(${places.join(', ')})::bigint as used,
          coalesce(pg_sequence_last_value('${sequence}'::regclass), 0) as last) as ids
      where used > last`,
    );
    broken.push(...used);
  }
  return broken;
}

/** Of the schema and what comes with it. */
export const SCHEMA_RULES: readonly Rule[] = [
  {
    name: 'in-force',
    meaning:
      'Every table, column, constraint, index, trigger and function of this version is there, ' +
      'valid and switched on, and no other constraint, trigger or rule beside them.',
    broken: notInForce,
  },
  {
    name: 'catalog-written',
    meaning: 'The markets and scopes are those of the catalog.',
    broken: strangeMarkets,
  },
  {
    name: 'ids-unused',
    meaning: 'The next id of each table is one that no row has or had.',
    broken: usedIds,
  },
];
