import type { Rule } from './rule.ts';

/** Rules on values. Their form is held by CHECK constraints, of which `in-force` sees each. */
export const VALUE_RULES: readonly Rule[] = [
  {
    name: 'corrections-counted',
    meaning:
      'A point has no corrections when it is first published, one more with each correction, and ' +
      'as many as before when it is published again after it was withdrawn.',
    broken: `
      select price_id, date, revision, corrections, expected
      from (
        select *, case
          when before is null then 0
          when ended = revision then before + 1
          else most end as expected
        from (
          select *, lag(corrections) over past as before, lag(revision_to) over past as ended,
            max(corrections) over (past rows between unbounded preceding and 1 preceding) as most
          from (
            select price_id, date, revision, null::bigint as revision_to, corrections from series s
              where corrections <> 0 or exists (
                select from series_history h where h.price_id = s.price_id and h.date = s.date)
            union all
            select price_id, date, revision, revision_to, corrections from series_history
          ) as versions
          window past as (partition by price_id, date order by revision)
        ) as ordered
      ) as counted
      where corrections <> expected`,
  },
];
