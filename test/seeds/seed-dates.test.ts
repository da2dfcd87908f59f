import { sql } from 'kysely';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';

const { db } = await seededDatabase(t);

async function rowsOf<T = Record<string, unknown>>(query: string): Promise<T[]> {
  const { rows } = await sql.raw<T>(query).execute(db);
  return rows;
}

/** Points with the price that they belong to; `iso` is 1 for Monday to 7 for Sunday. */
const POINTS = `series s join price p on p.id = s.price_id
  join dimension_value f on f.id = p.frequency_id
  left join dimension_value country on country.id = p.country_id
  cross join lateral (select extract(isodow from s.date)::integer as iso) as day`;

t.test(
  'values are dated by the frequency of their price, from its launch to a fixed end',
  async (t) => {
    const days: Record<string, string> = {
      Daily: 'iso between 1 and 5',
      'Twice weekly': 'iso in (2, 4)',
      Weekly: 'iso = 4',
      Fortnightly: 'iso = 3 and (s.date - p.assessment_launched_at) % 14 = 0',
      Monthly: 'iso between 1 and 5',
      Quarterly: 'iso between 1 and 5 and extract(month from s.date) in (3, 6, 9, 12)',
    };
    for (const [name, rule] of Object.entries(days)) {
      const counts = await rowsOf<{ points: number; wrong: number }>(
        `select count(*)::integer as points,
         (count(*) filter (where not (${rule})))::integer as wrong
       from ${POINTS} where f.name = '${name}'`,
      );
      t.equal(counts[0]?.wrong, 0, name);
      t.ok((counts[0]?.points ?? 0) > 400, `${name}: ${counts[0]?.points} points`);
    }
    t.same(
      await rowsOf(
        `select p.code, s.date from ${POINTS}
       where s.date < greatest(p.assessment_launched_at, '2021-01-01') or s.date > '2026-06-30'`,
      ),
      [],
    );
    // A month is closed on its last weekday, but for these holidays at an end of a month.
    const early = await rowsOf<{ month: string }>(
      `select distinct coalesce(country.name = 'China', false) as china, s.date::text as month
     from ${POINTS} where f.name in ('Monthly', 'Quarterly') and exists (
       select from generate_series(s.date + 1,
         (date_trunc('month', s.date) + interval '1 month - 1 day')::date, '1 day') as later (day)
       where extract(isodow from later.day) < 6) order by 2`,
    );
    t.same(early, [
      { china: true, month: '2022-01-28' },
      { china: true, month: '2023-09-28' },
      { china: false, month: '2024-03-28' },
      { china: true, month: '2025-01-27' },
    ]);
  },
);

t.test('holidays leave gaps, the lunar new year in Chinese prices only', async (t) => {
  const closedIn2024 = async (code: string): Promise<string> => {
    const rows = await rowsOf<{ day: string }>(
      `select to_char(day, 'MM-DD') as day
       from generate_series('2024-01-01', '2024-12-31', '1 day'::interval) as day
       where extract(isodow from day) < 6 and not exists (
         select from ${POINTS} where p.code = '${code}' and s.date = day)
       order by day`,
    );
    return rows.map(({ day }) => day).join(' ');
  };
  t.equal(await closedIn2024('CP-CU-0001'), '01-01 03-29 04-01 05-01 12-25 12-26');
  t.equal(
    await closedIn2024('CP-LI-0001'),
    [
      '01-01 02-09 02-12 02-13 02-14 02-15 02-16 04-04 04-05 05-01 05-02 05-03',
      '06-10 09-16 09-17 10-01 10-02 10-03 10-04 10-07',
    ].join(' '),
  );
  t.same(
    await rowsOf(
      `select s.date from ${POINTS} where s.date in ('2025-12-25', '2025-04-18', '2026-01-01')
         and country.name is distinct from 'China'`,
    ),
    [],
  );
});
