import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { OFFICE, type OfficeCell, openInOffice } from '../../support/office/office.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { rowsOf } from '../../support/prices/rows.ts';
import { commit, putPoints } from '../../support/prices/sample-writes.ts';
import { makeFolder } from '../../support/run/folders.ts';

/*
 * Files in LibreOffice, with the settings of two countries. A number that its spreadsheet reads as
 * another one, or as a text, is the fault that these tests look for.
 */

const LOCALES = ['en-US', 'de-DE'] as const;

const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

/** Options that fill every column between them. */
const OPTIONS = [
  { includeSeries: true },
  { includeSeries: true, includeSummary: true, currency: 'EUR', unitOfMeasure: 'lb' },
  { includeSeries: true, aggregate: { period: 'month', method: 'average' }, currency: 'CNY' },
] as const;

const FILTERS = { dateFrom: '2026-03-01' };

/** The columns of numbers. */
const NUMBERS =
  /^(low|mid|high|corrections|observations\w*|fx(From|To)|unit(Multiply|Divide)|\w+Mid)$/;
const FIGURES = /(Absolute|Percent)$/;

/** A number to the 15 digits that a spreadsheet shows: one with more is not exact there. */
const shownOf = (number: string): string => Number(number).toPrecision(15);

/** The fault of a cell whose value in the JSON is a text; null for none. */
function faultOf(name: string, wanted: string, cell: OfficeCell | undefined): string | null {
  const { type = '', value = '', shown = '' } = cell ?? {};
  const found = `${name}: ${type} ${value} "${shown}" and not ${wanted}`;
  if (wanted === '') return type === '' ? null : found;
  if (NUMBERS.test(name) || FIGURES.test(name)) {
    return type === 'float' && shownOf(value) === shownOf(wanted) ? null : found;
  }
  if (/^\d{4}-\d\d-\d\d(T[\d:]+Z)?$/.test(wanted)) {
    const isSame = type === 'date' && value === wanted.replace('Z', '');
    return isSame ? null : found;
  }
  if (name === 'isSustainable') return value === (wanted === 'true' ? '1' : '0') ? null : found;
  return type === 'string' && shown === wanted ? null : found;
}

/** The first fault of a sheet, whose first row has the names; null for none. */
function faultOfSheet(
  [names = [], ...rows]: readonly OfficeCell[][],
  wanted: readonly Readonly<Record<string, string>>[],
  check: typeof faultOf,
): string | null {
  if (rows.length !== wanted.length) return `${rows.length} rows and not ${wanted.length}`;
  for (const [at, row] of rows.entries()) {
    for (const [place, { shown: name }] of names.entries()) {
      const fault = check(name, wanted[at]?.[name] ?? 'no column', row[place]);
      if (fault !== null) return `row ${at}, ${fault}`;
    }
  }
  return null;
}

if (OFFICE === null) t.comment('LibreOffice is not installed: its tests are not run');
else {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await putPoints(
      client,
      'CP-NI-0001',
      ['2026-03-02', '1.094', '12.345', '1234567.891'],
      ['2026-03-03', '0.0000000001', '0.001', '12345.6789012345'],
      ['2026-03-04', null, '123456789012345', null],
    );
    await client.query(`update price set name = 'Nickel über Köln, 镍' where code = 'CP-NI-0001'`);
  });
  const service = await serviceOn(t, database);
  const folder = await makeFolder();
  t.teardown(() => folder.remove());

  const ask = async (options: object, accept: string) => {
    const answer = await service.app.inject({
      method: 'POST',
      url: '/v3/prices/nickel',
      payload: { filters: FILTERS, options },
      headers: { accept, 'x-api-key': service.key },
    });
    if (answer.statusCode !== 200) throw new Error(answer.body);
    return answer.rawPayload;
  };

  t.test(
    'every value of a workbook is that of the JSON to 15 digits, in each locale',
    async (t) => {
      for (const [place, options] of OPTIONS.entries()) {
        const records = parseExact((await ask(options, 'application/json')).toString()).data;
        const wanted = records
          .flatMap(rowsOf)
          .map((row: Record<string, string>) =>
            Object.fromEntries(
              Object.entries(row).map(([name, text]) => [name, text.replace(/^'(?=[=+@-])/, '')]),
            ),
          );
        t.ok(wanted.length > 20);
        const file = join(folder.path, `prices-${place}.xlsx`);
        await writeFile(file, await ask(options, XLSX));
        for (const locale of LOCALES) {
          const sheet = await openInOffice(file, locale, folder.path);
          t.equal(faultOfSheet(sheet, wanted, faultOf), null, `${locale} ${place}`);
        }
      }
    },
  );

  t.test(
    'every name, number and date of a CSV with semicolons is that of the JSON in German',
    async (t) => {
      for (const options of OPTIONS) {
        const records = parseExact((await ask(options, 'application/json')).toString()).data;
        const wanted = records.flatMap(rowsOf);
        const file = join(folder.path, 'semicolons.csv');
        const csv = { ...options, csvDialect: 'semicolon' };
        const bytes = await ask(csv, 'text/csv');
        // Excel reads a file without this mark in the encoding of its country.
        t.equal(bytes.subarray(0, 3).toString('hex'), 'efbbbf');
        await writeFile(file, bytes);
        const filter = 'CSV:59,34,76,1,,0,false,true';
        const sheet = await openInOffice(file, 'de-DE', folder.path, filter);
        // A CSV has no types: a text that looks like a number may be read as one.
        const isTyped = (name: string) =>
          NUMBERS.test(name) || FIGURES.test(name) || ['code', 'name', 'date'].includes(name);
        const check: typeof faultOf = (name, text, cell) =>
          isTyped(name) ? faultOf(name, text, cell) : null;
        t.equal(faultOfSheet(sheet, wanted, check), null, JSON.stringify(options));
      }
    },
  );
}
