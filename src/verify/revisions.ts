import { ANY_PRICE, OMITTED_CHANGES, type Rule, VERSIONED, type Versioned } from './rule.ts';

/** Versions of a row that overlap, have an illegal gap, or begin after the current version. */
const brokenVersions = ({ table, key, mayBeRestored }: Versioned): string => {
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
  where next < revision_to or (revision_to is null and next is not null)
    or next = revision${mayBeRestored ? '' : ' or next > revision_to'}`;
};

/** Revisions that began or ended a row, by table. */
const USED_REVISIONS = VERSIONED.flatMap(({ table }) => [
  `select '${table}' as "table", revision from ${table}`,
  `select '${table}_history', revision from ${table}_history`,
  `select '${table}_history', revision_to from ${table}_history`,
])
  .map((query) => `(${query} group by 1, 2)`)
  .join(' union all ');

/** The column from which the scope of a row follows, the scope, and what it joins. */
const SCOPES: Readonly<Record<string, readonly [column: string, scope: string, joined: string]>> = {
  price: ['market_id', 'm.slug', `join market m on m.id = v.market_id`],
  series: [
    'price_id',
    'm.slug',
    `join ${ANY_PRICE} p on p.id = v.price_id join market m on m.id = p.market_id`,
  ],
  fx_rate: ['source', `'fx:' || v.source`, ''],
  price_calendar: [
    'price_id',
    'm.slug',
    `join ${ANY_PRICE} p on p.id = v.price_id join market m on m.id = p.market_id`,
  ],
};

/** The revisions of a versioned table with their scopes. */
const scopesOf = ({ table }: Versioned): string => {
  const [column, scope, joined] = SCOPES[table] ?? ['1', `'reference'`, ''];
  return `
  select distinct ${scope} as scope, v.revision
  from (
    select ${column}, revision from ${table} group by 1, 2
    union select ${column}, revision from ${table}_history
    union select ${column}, revision_to from ${table}_history) as v ${joined}`;
};

/** The calendars of prices are reference data, too. */
const CALENDARS = `
  select 'reference' as scope, v.revision
  from (
    select revision from price_calendar
    union select revision from price_calendar_history
    union select revision_to from price_calendar_history) as v`;

const ALL_SCOPES = [...VERSIONED.map(scopesOf), CALENDARS].join(' union ');

/** Changed points by revision and price: a version begins, or ends without a successor. */
const POINTS = `
  select revision, price_id, count(*) as points, min(date) as first, max(date) as last
  from (
    select revision, price_id, date from series
    union all
    select revision, price_id, date from series_history
    union all
    select revision_to, price_id, date from series_history h
      where not exists (select from series s where s.price_id = h.price_id and s.date = h.date
          and s.revision = h.revision_to)
        and not exists (select from series_history n where n.price_id = h.price_id
          and n.date = h.date and n.revision = h.revision_to)
  ) as changed group by 1, 2`;

const PRICE_CHANGES = `
  select revision, id as price_id from price
  union select revision, id from price_history
  union select revision_to, id from price_history`;

/** Rules of revisions and history. */
export const REVISION_RULES: readonly Rule[] = [
  {
    name: 'revisions-whole',
    meaning:
      'Revisions are numbered from 1 without a gap, and their commit times increase strictly.',
    broken: `select number, committed_at, previous, "previousTime" from (
        select number, committed_at, lag(number, 1, 0::bigint) over numbered as previous,
          lag(committed_at) over numbered as "previousTime"
        from revision window numbered as (order by number)) as r
      where number <> previous + 1 or committed_at <= "previousTime"`,
  },
  {
    name: 'revisions-known',
    meaning: 'Every revision that began or ended a row exists.',
    broken: `select "table", revision from (${USED_REVISIONS}) as m
      where not exists (select from revision r where r.number = m.revision)`,
  },
  {
    name: 'scopes-noted',
    meaning:
      'Every revision records its scopes: each market whose prices or points it changed, each ' +
      'source of rates, and reference data. All recorded scopes exist.',
    broken: `
      select number as revision, null as scope, 'has no scope' as problem from revision r
        where not exists (select from revision_scope s where s.revision = r.number)
      union all
      select revision, scope, 'is not recorded' from (${ALL_SCOPES}) as t
        where not exists (
          select from revision_scope s where s.scope = t.scope and s.revision = t.revision)
      union all
      select revision, scope, 'is unknown' from revision_scope s
        where scope <> 'reference' and not exists (select from market m where m.slug = s.scope)
          and not exists (select from fx_source f where 'fx:' || f.slug = s.scope)
      union all
      select revision, scope, 'has an unknown revision' from revision_scope s
        where not exists (select from revision r where r.number = s.revision)`,
  },
  {
    name: 'history-whole',
    meaning:
      'The versions of a row do not overlap, and the current version is the last. Versions of ' +
      'units and search aliases have no gap; other rows may have been removed for a time.',
    broken: VERSIONED.map(brokenVersions).join(' union all '),
  },
  {
    name: 'changes-counted',
    meaning:
      'For each revision, the feed counts the same changes of each price and its points as the ' +
      'rows and their history, within the recorded dates.',
    broken: `
      select revision, price_id, p.code, s.points, c.points as "pointsFound", s.price_changes,
        (o.price_id is not null)::integer as "priceChangesFound", s.first_date, s.last_date
      from change_segment s
        full join (${POINTS}) as c using (revision, price_id)
        full join (${PRICE_CHANGES}) as o using (revision, price_id)
        left join ${ANY_PRICE} as p on p.id = price_id
      where (s.points, s.price_changes) is distinct from
          (coalesce(c.points, 0), (o.price_id is not null)::integer)
        and not (p.id is null
          and (s.market_id, revision) in (select * from ${OMITTED_CHANGES} as l))
        or c.first < s.first_date or c.last > s.last_date or p.market_id <> s.market_id`,
  },
  {
    name: 'changes-numbered',
    meaning:
      'The numbers of changes start at 1 without gaps or duplicates, in the order of revisions ' +
      'and prices.',
    broken: `
      select revision, price_id, first_seq, expected from (
        select revision, price_id, first_seq,
          lag(first_seq + price_changes + points, 1, 1::bigint) over numbered as expected,
          lag(revision, 1, 0::bigint) over numbered as previous
        from change_segment window numbered as (order by revision, price_id)) as s
      where first_seq is distinct from expected
        and not (first_seq > expected and exists (
          select from ${OMITTED_CHANGES} as l where l.revision between s.previous and s.revision))`,
  },
];
