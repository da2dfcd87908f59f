import t from 'tap';
import {
  CORRECTING,
  describePrices,
  errorsOf,
  loadingDatabase,
  loadText,
  points,
} from './support/loading.ts';
import { n, pinkSheet } from './support/workbook.ts';

const hoursFromNow = (hours: number, zone: number): string => {
  const local = new Date(Date.now() + (hours + zone) * 3_600_000).toISOString().slice(0, 19);
  const sign = zone < 0 ? '-' : '+';
  return `${local}${sign}${String(Math.abs(zone)).padStart(2, '0')}:00`;
};

t.test('publication times are compared as instants, whatever their offset', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const wrong = [
    '1800-01-01T00:00:00+14:00',
    '1800-01-01T00:00:00+00:01',
    hoursFromNow(1, 0),
    hoursFromNow(1, 14),
    hoursFromNow(1, -12),
    hoursFromNow(41, -12),
  ];
  const rows = wrong.map((time) => `A,2026-01-05,,1,,${time}`);
  t.strictSame(
    errorsOf(await loadText(t, client, 'csv', points(...rows))),
    wrong.map((_, index) => [index + 2, 'publishedAt', 'invalid_time']),
  );
  const right = {
    '1799-12-31T23:59:59.5-00:01': '1800-01-01 00:00:59.5+00',
    '1800-01-01T00:00:00Z': '1800-01-01 00:00:00+00',
    '2026-01-05T16:00:00.123456+05:30': '2026-01-05 10:30:00.123456+00',
    // PostgreSQL does not accept offsets of 16 hours and more.
    '2026-01-05T16:00:00+23:59': '2026-01-04 16:01:00+00',
    '2026-01-05T16:00:00-23:59': '2026-01-06 15:59:00+00',
  };
  const times = Object.keys(right).map((time, index) => `A,2026-01-0${index + 1},,1,,${time}`);
  const last = hoursFromNow(-1, 14);
  t.match(await loadText(t, client, 'csv', points(...times, `A,2026-01-09,,1,,${last}`)), {
    status: 'applied',
    errorsTotal: 0,
  });
  const stored = await pool.query('select published_at from series order by date limit 5');
  t.strictSame(
    stored.rows.map((row) => row.published_at),
    Object.values(right),
  );
});

t.test(
  'a correction of the World Bank counts as published on the day of its edition',
  async (t) => {
    const editions = [
      { updated: 'Updated on February 4, 2020', values: ['100', '200', '300'] },
      { updated: 'Updated on March 3, 2020', values: ['101', '200', '300'] },
      { updated: 'Updated on April 2, 2020', values: ['102', '201', '300'] },
    ];
    const publishedAfter = async (order: readonly number[]) => {
      const { client, pool } = await loadingDatabase(t);
      for (const index of order) {
        const { updated, values } = editions[index] ?? { updated: '', values: [] };
        const [aluminium = '', copper = '', nickel = ''] = values;
        const rows = [['2020M01', null, n(aluminium), null, n(copper), n(nickel)]];
        await loadText(t, client, 'worldbank', pinkSheet({ updated, rows }), CORRECTING);
      }
      const { rows } = await pool.query(`select mid, published_at, corrections
      from series order by price_id`);
      return rows.map(({ mid, published_at, corrections }) => [mid, published_at, corrections]);
    };
    const first = '2020-02-01 00:00:00+00';
    const [march, april] = ['2020-03-03 00:00:00+00', '2020-04-02 00:00:00+00'];
    t.strictSame(await publishedAfter([0, 1]), [
      ['101', march, 1],
      ['200', first, 0],
      ['300', first, 0],
    ]);
    t.strictSame(await publishedAfter([0, 1, 2]), [
      ['102', april, 2],
      ['201', april, 1],
      ['300', first, 0],
    ]);
    t.strictSame(await publishedAfter([0, 2, 1]), [
      ['102', april, 1],
      ['201', april, 1],
      ['300', first, 0],
    ]);
    t.strictSame(
      await publishedAfter([2, 1, 0]),
      [
        ['102', first, 0],
        ['201', first, 0],
        ['300', first, 0],
      ],
      'uncorrected values were published once',
    );
  },
);
