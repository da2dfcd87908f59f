import { ANY_PRICE, LEFT_OUT, type Rule } from './rule.ts';

/** The points that each revision changed of each price: a version begins, or one ends for good. */
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

const OWN = `
  select revision, id as price_id from price
  union select revision, id from price_history
  union select revision_to, id from price_history`;

/** Of the feed. */
export const CHANGE_RULES: readonly Rule[] = [
  {
    name: 'changes-counted',
    meaning:
      'For each revision the feed counts as many changes of each price, and of its points, as ' +
      'its rows and their history tell, between the dates that it notes.',
    broken: `
      select revision, price_id, p.code, s.points, c.points as "pointsFound", s.price_changes,
        (o.price_id is not null)::integer as "priceChangesFound", s.first_date, s.last_date
      from change_segment s
        full join (${POINTS}) as c using (revision, price_id)
        full join (${OWN}) as o using (revision, price_id)
        left join ${ANY_PRICE} as p on p.id = price_id
      where (s.points, s.price_changes) is distinct from
          (coalesce(c.points, 0), (o.price_id is not null)::integer)
        and not (p.id is null and (s.market_id, revision) in (select * from ${LEFT_OUT} as l))
        or c.first < s.first_date or c.last > s.last_date or p.market_id <> s.market_id
        or s.points > 0 and s.first_date is null`,
  },
  {
    name: 'changes-numbered',
    meaning:
      'The numbers of changes begin with 1 and have no gap and no number twice, in the order of ' +
      'revisions and prices.',
    broken: `
      select revision, price_id, first_seq, expected from (
        select revision, price_id, first_seq,
          lag(first_seq + price_changes + points, 1, 1::bigint) over numbered as expected,
          lag(revision, 1, 0::bigint) over numbered as previous
        from change_segment window numbered as (order by revision, price_id)) as s
      where first_seq is distinct from expected
        and not (first_seq > expected and exists (
          select from ${LEFT_OUT} as l where l.revision between s.previous and s.revision))`,
  },
];
