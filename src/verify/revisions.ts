import { ANY_PRICE, type Rule, VERSIONED, type Versioned } from './rule.ts';

/** Versions of a row that overlap, leave a hole that may not be, or come after the current one. */
const badChain = ({ table, key, mayReturn }: Versioned): string => {
  const keys = key.join(', ');
  const same = key.map((column) => `h.${column} = c.${column}`).join(' and ');
  return `
  select '${table}' as "table", row(${keys})::text as key, revision, revision_to,
    next as "nextRevision"
  from (
    select *, lead(revision) over (partition by ${keys} order by revision) as next
    from (
      select ${keys}, revision, revision_to from ${table}_history
      union all
      select ${keys}, revision, null from ${table} c
        where exists (select from ${table}_history h where ${same})
    ) as versions
  ) as chained
  where revision_to <= revision or next < revision_to or (revision_to is null and next is not null)
    or next = revision${mayReturn ? '' : ' or next > revision_to'}`;
};

/** Table and revision of every row, also the revisions that ended one. */
const MENTIONED = VERSIONED.flatMap(({ table }) => [
  `select '${table}' as "table", revision from ${table}`,
  `select '${table}_history', revision from ${table}_history`,
  `select '${table}_history', revision_to from ${table}_history`,
])
  .map((query) => `(${query} group by 1, 2)`)
  .join(' union all ');

/** The revisions of a versioned table, each with the scope that it touched. */
const scopesOf = ({ table }: Versioned): string => {
  const scopes: Readonly<Record<string, readonly [string, string]>> = {
    price: ['m.slug', `join market m on m.id = v.market_id`],
    series: [
      'm.slug',
      `join ${ANY_PRICE} p on p.id = v.price_id join market m on m.id = p.market_id`,
    ],
    fx_rate: [`'fx:' || v.source`, ''],
  };
  const [scope, joined] = scopes[table] ?? [`'reference'`, ''];
  const columns: Readonly<Record<string, string>> = {
    price: 'market_id',
    series: 'price_id',
    fx_rate: 'source',
  };
  const column = columns[table] ?? '1';
  return `
  select distinct ${scope} as scope, v.revision
  from (
    select ${column}, revision from ${table} group by 1, 2
    union select ${column}, revision from ${table}_history
    union select ${column}, revision_to from ${table}_history) as v ${joined}`;
};

/** Of revisions, and of the past that they make. */
export const REVISION_RULES: readonly Rule[] = [
  {
    name: 'revisions-whole',
    meaning: 'Revisions are numbered from 1 without a gap, and their times grow strictly.',
    broken: `select number, committed_at, previous, "previousTime" from (
        select number, committed_at, lag(number, 1, 0::bigint) over numbered as previous,
          lag(committed_at) over numbered as "previousTime"
        from revision window numbered as (order by number)) as r
      where number <> previous + 1 or committed_at <= "previousTime"`,
  },
  {
    name: 'revisions-known',
    meaning: 'Every revision that a row carries, or that ended it, is one that there was.',
    broken: `select "table", revision from (${MENTIONED}) as m
      where not exists (select from revision r where r.number = m.revision)`,
  },
  {
    name: 'scopes-noted',
    meaning:
      'Every revision notes what it touched: each market whose prices or points it changed, each ' +
      'source of rates, reference data; and these exist.',
    broken: `
      select number as revision, null as scope, 'touched nothing' as problem from revision r
        where not exists (select from revision_scope s where s.revision = r.number)
      union all
      select revision, scope, 'is not noted' from (${VERSIONED.map(scopesOf).join(' union ')}) as t
        where not exists (
          select from revision_scope s where s.scope = t.scope and s.revision = t.revision)
      union all
      select revision, scope, 'there is no such thing' from revision_scope s
        where scope <> 'reference' and not exists (select from market m where m.slug = s.scope)
          and not exists (select from fx_source f where 'fx:' || f.slug = s.scope)
      union all
      select revision, scope, 'there is no such revision' from revision_scope s
        where not exists (select from revision r where r.number = s.revision)`,
  },
  {
    name: 'history-whole',
    meaning:
      'The versions of a row follow each other without an overlap, the current one last; those ' +
      'of units without a hole too, while other rows may have been gone for a while.',
    broken: VERSIONED.map(badChain).join(' union all '),
  },
];
