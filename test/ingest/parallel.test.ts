import t from 'tap';
import { recordFigures } from '../support/run/faults.ts';
import {
  CORRECTING,
  contentOf,
  describePrices,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
} from './support/loading.ts';

const eight = Array.from({ length: 8 }, (_, index) => index);

t.test('the same file eight times at once has one effect', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const text = points('A,2026-01-01,,1,,', 'A,2026-01-02,,2,,');
  const reports = await Promise.all(eight.map(() => loadText(t, client, 'csv', text)));
  recordFigures('F40', { 'loads of one file at once': reports.length });
  const statuses = reports.map(({ status }) => status).sort();
  t.strictSame(statuses, [...Array(7).fill('already-loaded'), 'applied']);
  t.equal(new Set(reports.map(({ batch }) => batch)).size, 1);
  t.equal((await seriesOf(pool, 'A')).length, 2);
  const { rows } = await pool.query(`select count(*) from load_batch where format = 'csv'`);
  t.equal(rows[0].count, '1');
});

t.test('files that describe the same new price at once create it once', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const header = 'code,date,mid,market,name,product,priceCategory,priceType,frequency,currency';
  const description = 'nickel,N,Nickel briquette,Spot,Price,Daily,USD,t';
  const reports = await Promise.all(
    eight.map((index) => {
      const row = `N,2026-01-0${index + 1},${index},${description}`;
      return loadText(t, client, 'csv', `${header},unitOfMeasure\n${row}\n`);
    }),
  );
  t.ok(reports.every(({ status }) => status === 'applied'));
  t.equal(
    reports.reduce((sum, { counts }) => sum + counts.pricesAdded, 0),
    1,
  );
  t.equal((await seriesOf(pool, 'N')).length, 8);
});

t.test('overlapping editions at once end with the values of the newest', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const day = (index: number) => `2026-01-0${index + 1}`;
  const reports = await Promise.all(
    eight.map((edition) => {
      const rows = eight.map((index) => `A,${day(index)},,${edition}${index},,`);
      const file = points(...rows, `B,${day(edition)},,${edition},,`);
      return loadText(t, client, 'csv', file, { ...CORRECTING, vintage: day(edition) });
    }),
  );
  t.strictSame(
    (await seriesOf(pool, 'A')).map(([date, , mid]) => [date, mid]),
    eight.map((index) => [day(index), `7${index}`]),
  );
  t.equal((await seriesOf(pool, 'B')).length, 8);
  for (const { status, counts } of reports) {
    t.equal(status, 'applied');
    const { rows, inserted, unchanged, corrected, outdated, rejected } = counts;
    t.equal(rows, inserted + unchanged + corrected + outdated + rejected);
  }
});

t.test('different kinds of files at once lead to the same data as one after another', async (t) => {
  const files = [
    ['ecb', 'ecb-hist.csv'],
    ['ecb', 'ecb-single-day.csv'],
    ['ecb', 'ecb-single-day.xml'],
    ['ecb', 'ecb-many-days.xml'],
    ['csv', 'prices.csv'],
    ['ndjson', 'prices.ndjson'],
  ] as const;
  const [together, apart] = [await loadingDatabase(t), await loadingDatabase(t)];
  await Promise.all(
    files.map(([format, name]) => loadFile(together.client, format, fixture(name))),
  );
  for (const [format, name] of files) await loadFile(apart.client, format, fixture(name));
  t.equal(await contentOf(together.pool), await contentOf(apart.pool));
});
