import { everyVersion, type Rule } from './rule.ts';

const POINTS = everyVersion('series', 'price_id, date, low, mid, high, published_at, corrections');
const RATES = everyVersion('fx_rate', 'source, currency_id, date, rate');

const CODE = '(select code from price where id = price_id) as code';

/** The first number that is too large, by decimals. */
const TOO_LARGE = `'{1e15,1e14,1e13,1e12,1e11,1e10,1e9,1e8,1e7,1e6,1e5}'::numeric[]`;

/** Whether a number is none, or has more than 10 decimals, or zeros at its end. */
const isInexact = (value: string): string =>
  `(${value} is not null and (coalesce(scale(${value}), 99) > 10
    or scale(${value}) <> min_scale(${value})))`;

const isNoDay = (date: string): string =>
  `(${date} not between '1800-01-01' and '2199-12-31'
    or ${date} > (now() at time zone 'UTC')::date + 1)`;

/** Of points and rates, those of the past too. */
export const VALUE_RULES: readonly Rule[] = [
  {
    name: 'points-in-order',
    meaning: 'In every point low ≤ mid ≤ high.',
    broken: `select "table", ${CODE}, date, revision, low, mid, high from ${POINTS} v
      where low > mid or mid > high or low > high`,
  },
  {
    name: 'points-exact',
    meaning:
      'Every value is a number of at most 15 digits at the finest decimals of its point, at most ' +
      '10 decimals, and no zeros at their end.',
    broken: `select "table", ${CODE}, date, revision, low, mid, high from ${POINTS} v
      where ${['low', 'mid', 'high'].map(isInexact).join(' or ')}
        or greatest(abs(low), abs(mid), abs(high)) >=
          (${TOO_LARGE})[1 + greatest(scale(low), scale(mid), scale(high))]`,
  },
  {
    name: 'points-dated',
    meaning: 'Points lie between 1800 and tomorrow, and were published between 1800 and 2199.',
    broken: `select "table", ${CODE}, date, revision, published_at from ${POINTS} v
      where ${isNoDay('date')}
        or published_at not between '1800-01-01T00:00Z' and '2199-12-31T23:59Z'`,
  },
  {
    name: 'rates-exact',
    meaning:
      'Every exchange rate is positive, has at most 15 digits, 10 decimals and no zeros at their ' +
      'end, and lies between 1800 and tomorrow.',
    broken: `select "table", source, currency_id, date, revision, rate from ${RATES} v
      where ${isInexact('rate')} or rate <= 0 or rate >= (${TOO_LARGE})[1 + scale(rate)]
        or ${isNoDay('date')}`,
  },
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
