import t from 'tap';
import { randomOf } from '../conversion/support.ts';
import {
  CORRECTING,
  describePrices,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
} from './support/loading.ts';

const DAYS = ['2020-01-01', '2020-02-01', '2020-03-01', '2020-04-01', '2020-05-01'];
const vintageOf = (edition: number): string => `2021-01-0${edition + 1}`;

/** Days of several editions, each with a new value or that of the other editions. */
function editionsOf(random: () => number): Map<string, string>[] {
  return Array.from({ length: 4 }, () => {
    const days = DAYS.filter(() => random() < 0.6);
    // A file without values would be refused.
    if (days.length === 0) days.push(DAYS[0] ?? '');
    return new Map(days.map((day) => [day, String(1 + Math.floor(random() * 3))]));
  });
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items];
  return items.map(() => left.splice(Math.floor(random() * left.length), 1)[0] as T);
}

/** The expected current data: on each day the value of the newest edition that has one. */
const newest = (editions: readonly Map<string, string>[]): [string, string][] =>
  DAYS.flatMap((day) => {
    const value = editions.findLast((each) => each.has(day))?.get(day);
    return value === undefined ? [] : [[day, value]];
  });

t.test(
  'on each day the newest edition that has a value wins, whatever the order and the gaps',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    const codes = Array.from({ length: 30 }, (_, seed) => `XX-${seed}`);
    await describePrices(client, ...codes);
    for (const [seed, code] of codes.entries()) {
      const random = randomOf(seed);
      const editions = editionsOf(random);
      const order = shuffled([0, 1, 2, 3], random);
      for (const edition of order) {
        const rows = [...(editions[edition] ?? [])].map(([day, mid]) => `${code},${day},,${mid},,`);
        const vintage = vintageOf(edition);
        const report = await loadText(t, client, 'csv', points(...rows), {
          ...CORRECTING,
          vintage,
        });
        t.ok(['applied', 'unchanged'].includes(report.status));
      }
      const seen = (await seriesOf(pool, code)).map(([date, , mid]) => [date, mid]);
      t.strictSame(seen, newest(editions), `seed ${seed}, order ${order.join()}`);
    }
  },
);

t.test('a load of another origin over a newer edition is not undone by an older one', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const list = (release: number, value: string) =>
    `release,market,series,year,value,currency_code_as_published,unit,estimated
MCS${release},copper,"Copper grade A, LME cash",2020,${value},USc,lb,false\n`;
  await loadText(t, client, 'usgs', list(2025, '280'));
  const corrected = points('CP-CU-9103,2020-12-31,,2.81,,');
  await loadText(t, client, 'csv', corrected, { ...CORRECTING, vintage: '2024-06-01' });
  const older = await loadText(t, client, 'usgs', list(2024, '282'), CORRECTING);
  t.match(older, { status: 'unchanged', counts: { outdated: 1 } });
  t.match(await seriesOf(pool, 'CP-CU-9103'), [['2020-12-31', null, '2.81']]);
});
