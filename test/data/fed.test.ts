import { readFile } from 'node:fs/promises';
import t from 'tap';
import { H10_COUNTRIES } from '../../src/ingest/formats/fed.ts';
import { errorsOf, loadFile, loadingDatabase } from '../ingest/support/loading.ts';
import { serviceOn } from '../support/http/service.ts';
import { dataFile } from './folder.ts';

const file = (name: string): string => dataFile('federal-reserve-h10', name);
const DAILY = 'daily-wide-1971-2017.csv';

/** Country, day and rate of the daily table, parsed independently, without trailing zeros. */
async function daily(): Promise<string[]> {
  const [header = '', ...lines] = (await readFile(file(DAILY), 'utf8')).trim().split('\n');
  const countries = header.split(',');
  return lines
    .flatMap((line) => {
      const [day, ...rates] = line.split(',');
      return rates.map((rate, at) => (rate === '' ? '' : `${countries[at + 1]} ${day} ${rate}`));
    })
    .filter((text) => text !== '')
    .map((text) => text.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, ''))
    .sort();
}

t.test('the daily table is stored rate by rate as it was published', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const report = await loadFile(client, 'fed', file(DAILY));
  t.match(report, { status: 'applied', vintage: '2017-12-01', errorsTotal: 0 });
  const { rows } = await pool.query(
    `select iso, date, rate from fx_rate join currency on id = currency_id where source = 'FED'`,
  );
  const countryOf = new Map(
    Object.entries(H10_COUNTRIES).map(([country, { iso }]) => [iso, country]),
  );
  const actual = rows.map(({ iso, date, rate }) => `${countryOf.get(iso)} ${date} ${rate}`).sort();
  const expected = await daily();
  t.equal(actual.length, expected.length);
  t.ok(
    actual.every((text, at) => text === expected[at]),
    'every rate is equal',
  );
  t.equal(new Set(rows.map(({ iso }) => iso)).size, 22, 'columns without a rate are no currency');
  t.match(await loadFile(client, 'fed', file(DAILY)), { status: 'already-loaded' });
});

t.test('averages of months are refused and serve no conversion of a day', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  const refused = await loadFile(client, 'fed', file('monthly.csv'));
  t.equal(refused.status, 'refused');
  t.strictSame(errorsOf(refused), [[1, null, 'period_averages']]);
  const { rows } = await pool.query('select count(*) from fx_rate');
  t.strictSame(rows, [{ count: '0' }]);
  await loadFile(client, 'fed', file(DAILY));
  const { post, request } = await serviceOn(t, database, { FX_SOURCE: 'FED' });
  const list = dataFile('usgs-mineral-commodity-summaries', 'mcs2026-price-extract.csv');
  await loadFile(client, 'usgs', list);
  await loadFile(
    client,
    'usgs',
    list.replace('mcs2026-price-extract', 'mcs2022/mcs2022-nicke_salient'),
  );
  const { json } = await post('nickel', {
    filters: { codes: ['CP-NI-9101'], dateFrom: '2017-01-01', dateTo: '2021-12-31' },
    options: { includeSeries: true, currency: 'EUR' },
  });
  const [record] = json.data;
  // The daily rates end before the first of its days.
  t.match(record.conversion, { status: 'refused', reason: 'no-rate', source: null });
  t.match(record, { currency: { iso: 'USD' }, series: { length: 5 } });
  t.ok(record.series.every((point: object) => !('fx' in point)));
  t.match(json.$metadata.warnings, [{ code: 'rates_missing', currency: 'EUR' }]);
  const rates = await request({
    method: 'GET',
    url: '/v3/reference/rates?base=USD&quote=EUR&from=2017-11-30',
  });
  t.match(rates.json.$metadata, { source: 'FED', sourceBase: 'USD' });
  t.match(rates.json.data, [
    { date: '2017-11-30', rate: '0.8405', legs: { base: '1', quote: '0.8405' } },
    { date: '2017-12-01', rate: '0.8396' },
  ]);
});
