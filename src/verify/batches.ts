import { everyVersion, OMITTED_CHANGES, type Rule } from './rule.ts';

const WRITTEN = ['series', 'fx_rate', 'holiday_list', 'calendar', 'price_calendar', 'vat_rate']
  .map((table) => everyVersion(table, 'batch_id'))
  .map((rows) => `select batch_id, revision, count(*) as rows from ${rows} v group by 1, 2`)
  .join(' union all ');

/** True if the database has all changes of the revision of a batch. */
const IS_WHOLE = `not exists (select from ${OMITTED_CHANGES} as l where l.revision = b.revision)`;

/** Number of price versions that began in each revision, of new prices and of others. */
const PRICE_VERSIONS = `
  select v.revision, count(*) filter (where h.id is null) as added,
    count(*) filter (where h.id is not null) as changed
  from ${everyVersion('price', 'id')} v
    left join price_history h on h.id = v.id and h.revision_to = v.revision
  group by 1`;

/** Number of rows of a versioned table that ended in each revision without a successor. */
const endedIn = (table: string, ...key: string[]): string => {
  const follows = (next: string): string => `not exists (select from ${next} n
    where n.revision = h.revision_to
      and ${key.map((column) => `n.${column} = h.${column}`).join(' and ')})`;
  return `select h.revision_to as revision, count(*) as rows from ${table}_history h
    where ${follows(table)} and ${follows(`${table}_history`)} group by 1`;
};

const WITHDRAWN = `select revision, sum(rows) as rows from (
    ${endedIn('series', 'price_id', 'date')}
    union all ${endedIn('fx_rate', 'source', 'currency_id', 'date')}
    union all ${endedIn('holiday_list', 'id')}
    union all ${endedIn('calendar', 'id')}
    union all ${endedIn('price_calendar', 'price_id')}
    union all ${endedIn('vat_rate', 'id')}) as e group by 1`;

/** Rules of the ledger. */
export const BATCH_RULES: readonly Rule[] = [
  {
    name: 'batches-counted',
    meaning:
      'In the revision of a batch, as many values name the batch as it inserted and corrected. ' +
      'No value of an earlier revision names it. An undo restores values with their original ' +
      'batch numbers.',
    broken: `
      with written as (
        select batch_id, revision, sum(rows) as rows from (${WRITTEN}) as w group by 1, 2)
      select b.id as batch, b.revision, b.inserted, b.corrected, coalesce(w.rows, 0) as found
        from load_batch b left join lateral (
          select sum(rows) as rows from written
          -- A value that an undo restores has the number of its original batch; reference data
          -- of seeds have none.
          where revision = b.revision and (batch_id = b.id or b.format = 'undo')) as w on true
        where b.status = 'applied' and case when ${IS_WHOLE}
          then b.inserted + b.corrected <> coalesce(w.rows, 0)
          else b.inserted + b.corrected < coalesce(w.rows, 0) end
      union all
      select b.id, w.revision, b.inserted, b.corrected, w.rows
        from written w join load_batch b on b.id = w.batch_id
        where b.status <> 'applied' or w.revision < b.revision or b.revision is null`,
  },
  {
    name: 'batches-prices',
    meaning:
      'The counts of added and changed prices of a batch equal the numbers of price versions ' +
      'that began in its revision.',
    broken: `
      select b.revision, b.added, b.changed, coalesce(v.added, 0) as "addedFound",
        coalesce(v.changed, 0) as "changedFound"
      from (
        select revision, sum(prices_added) as added, sum(prices_changed) as changed
        from load_batch where status = 'applied' and revision is not null group by 1) as b
        left join (${PRICE_VERSIONS}) as v using (revision)
      where ${IS_WHOLE}
        and (b.added, b.changed) is distinct from (coalesce(v.added, 0), coalesce(v.changed, 0))`,
  },
  {
    name: 'batches-withdrawn',
    meaning:
      'The counts of withdrawn values and removed prices of a batch equal the numbers of rows ' +
      'that ended in its revision without a successor.',
    broken: `
      select b.revision, b.withdrawn, b.removed, coalesce(w.rows, 0) as "withdrawnFound",
        coalesce(p.rows, 0) as "removedFound"
      from (
        select revision, sum(withdrawn) as withdrawn, sum(prices_removed) as removed
        from load_batch where status = 'applied' and revision is not null group by 1) as b
        left join (${WITHDRAWN}) as w using (revision)
        left join (${endedIn('price', 'id')}) as p using (revision)
      where ${IS_WHOLE}
        and (b.withdrawn, b.removed) is distinct from (coalesce(w.rows, 0), coalesce(p.rows, 0))`,
  },
  {
    name: 'batches-linked',
    meaning:
      'A batch with changes names its revision; a refused batch, or one without changes, names ' +
      'none. An undo in force and the batch that it undoes name each other.',
    broken: `
      select b.id as batch, b.format, b.status, b.revision, b.undoes, b.undone_by
      from load_batch b left join load_batch u on u.id = b.undone_by
        left join load_batch o on o.id = b.undoes
      where (b.status = 'refused' and b.revision is not null)
        or (b.status = 'applied' and b.revision is null and (b.inserted + b.corrected + b.withdrawn
          + b.prices_added + b.prices_changed + b.prices_removed) > 0)
        or (b.undone_by is not null and (u.undoes is distinct from b.id or u.status <> 'applied'))
        or (b.status = 'applied' and b.undoes is not null
          and (o.undone_by is not distinct from b.id) <> (b.undone_by is null))
        or (b.revision is not null
          and not exists (select from revision r where r.number = b.revision))`,
  },
  {
    name: 'coverage-agrees',
    meaning:
      'Coverage belongs to an applied batch with an edition. Its ranges do not overlap, and ' +
      'they include every value that the batch wrote.',
    broken: `
      select c.batch_id as batch, c.price_id, c.currency_id, c.first_date, c.last_date,
        next as "nextFirst", null::date as date
      from (select *, lead(first_date) over (
          partition by batch_id, price_id, currency_id order by first_date) as next
        from load_coverage) as c left join load_batch b on b.id = c.batch_id
      where next <= last_date or b.vintage is null or b.status <> 'applied'
      union all
      select b.id, v.price_id, v.currency_id, null, null, null, v.date
      from (
        select batch_id, revision, price_id, null::smallint as currency_id, date
          from ${everyVersion('series', 'batch_id, price_id, date')} s
        union all
        select batch_id, revision, null, currency_id, date
          from ${everyVersion('fx_rate', 'batch_id, currency_id, date')} r) as v
        join load_batch b on b.id = v.batch_id and b.revision = v.revision
      where b.vintage is not null and b.format not in ('withdraw', 'undo')
        and not exists (select from load_coverage c where c.batch_id = b.id
          and c.price_id = v.price_id and v.date between c.first_date and c.last_date)
        and not exists (select from load_coverage c where c.batch_id = b.id
          and c.currency_id = v.currency_id and v.date between c.first_date and c.last_date)`,
  },
];
