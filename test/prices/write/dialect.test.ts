import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { parseCsv, parseSemicolons } from '../../support/prices/csv.ts';
import { addPrice, commit, putPoints } from '../../support/prices/sample-writes.ts';

const { url: _url, ...database } = await testDatabase(t, { seeded: true });
await commit(database.pool, async (client) => {
  const specification = [{ name: 'a;b', value: '1,5;-2.5 "x"', order: 1 }];
  await addPrice(client, { code: 'CP-NI-9001', currency: 'USD', unit: 'tonne', specification });
  await putPoints(
    client,
    'CP-NI-9001',
    ['2026-06-02', '-0.0000000001', '12345.6789', '99999'],
    ['2026-06-03', null, '-1.5', null],
  );
});
const service = await serviceOn(t, { url: _url, ...database });

const ask = async (filters: object, options: object) => {
  const { text } = await service.request({
    method: 'POST',
    url: '/v3/prices/nickel',
    payload: { filters, options },
    headers: { accept: 'text/csv' },
  });
  return text;
};

const NUMBERS =
  /^(low|mid|high|moving\w+|fx(From|To)|unit(Multiply|Divide)|\w+(Mid|Absolute|Percent)|CP-.*)$/;

t.test(
  'a CSV with semicolons has the cells of the one with commas, its decimals with a comma',
  async (t) => {
    const series = { includeSeries: true };
    const summary = { ...series, includeSummary: true };
    const filters = { dateFrom: '2026-05-01', regions: ['Europe', 'Süd, "x"; y'] };
    let decimals = 0;
    for (const [where, options] of [
      [filters, series],
      [filters, { ...series, warnings: 'row' }],
      [filters, { ...series, layout: 'wide', warnings: 'row' }],
      [filters, { ...series, columns: 'short', limit: 3 }],
      [filters, { ...summary, currency: 'EUR', unitOfMeasure: 'lb' }],
      [filters, { ...series, movingAverage: 3 }],
      [{ codes: ['CP-NI-9001'] }, series],
      [{ codes: ['CP-NI-9001'] }, { ...series, layout: 'wide' }],
    ] as const) {
      const [names = [], ...rows] = parseCsv(await ask(where, options));
      const text = await ask(where, { ...options, csvDialect: 'semicolon' });
      t.ok(text.startsWith('\ufeff'), 'a byte-order mark for spreadsheets');
      const found = parseSemicolons(text.slice(1));
      t.same(found[0], names);
      const wanted = rows.map((row) =>
        row.map((cell, at) => (NUMBERS.test(names[at] ?? '') ? cell.replace('.', ',') : cell)),
      );
      t.same(found.slice(1), wanted, JSON.stringify(options));
      decimals += wanted.flat().filter((cell) => /^-?\d+,\d+$/.test(cell)).length;
      t.same(parseCsv(await ask(where, { ...options, csvDialect: 'comma' })), [names, ...rows]);
    }
    t.ok(decimals > 100, `${decimals} numbers have decimals`);
  },
);

t.test('the dialect of other formats is refused', async (t) => {
  const query = 'format=rows&csvDialect=semicolon';
  const { status, json } = await service.request({
    method: 'GET',
    url: `/v3/prices/nickel?${query}`,
  });
  t.same([status, json.errors[0].pointer], [400, '?csvDialect']);
});
