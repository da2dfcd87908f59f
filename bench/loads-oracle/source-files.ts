import { bookOf, num, sheetOf } from '../../test/ingest/support/sheets.ts';
import { n, pinkSheet, type TestCell, zipOf } from '../../test/ingest/support/workbook.ts';
import { dayOf, spoilText, type TextFile } from './csv-files.ts';
import type { Random } from './random.ts';

const spoiled = (random: Random, text: string, probability: number): string | Buffer =>
  random.chance(probability) ? spoilText(random, text) : text;

const RATES = ['1.0921', '1.1', '1.10', '1.5', '0.8612', 'N/A', 'N/A'];
const BAD_RATES = ['0', '-1', 'x', '', '1e2', '99999'];

function ecbCsv(random: Random): string {
  const currencies = random.some(['USD', 'JPY', 'SEK', 'GBP', 'TRL', 'XYZ'], 1, 4);
  const known = currencies.filter((each) => each !== 'XYZ' || random.chance(0.1));
  const rateOf = () => (random.chance(0.02) ? random.pick(BAD_RATES) : random.pick(RATES));
  const days = [...new Set(Array.from({ length: 4 }, () => dayOf(random)))];
  const rows = Array.from({ length: random.int(1, days.length) }, (_, index) =>
    [random.chance(0.02) ? '2026-02-30' : days[index], ...known.map(rateOf), ''].join(','),
  );
  return `${['Date', ...known, ''].join(',')}\n${rows.join('\n')}\n`;
}

function ecbXml(random: Random): string {
  const days = Array.from({ length: random.int(1, 2) }, () => {
    const date = random.chance(0.05) ? '2026-99-01' : dayOf(random);
    const cubes = random.some(['USD', 'JPY', 'SEK', 'CHF'], 1, 3).map((currency) => {
      const rate = random.chance(0.05) ? random.pick(BAD_RATES) : random.pick(RATES.slice(0, 5));
      return `   <Cube currency='${currency}' rate='${rate}'/>`;
    });
    return `  <Cube time='${date}'>\n${cubes.join('\n')}\n  </Cube>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"
 xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
 <Cube>
${days.join('\n')}
 </Cube>
</gesmes:Envelope>
`;
}

/** A file of the ECB: CSV, the same in an archive, or XML. */
export function ecb(random: Random): TextFile {
  if (random.chance(0.3)) return { ending: '.xml', content: spoiled(random, ecbXml(random), 0.1) };
  const content = spoiled(random, ecbCsv(random), 0.1);
  if (random.chance(0.8)) return { ending: '.csv', content };
  const parts = [{ name: 'eurofxref.csv', content }];
  if (random.chance(0.1)) parts.push({ name: 'other.csv', content });
  return { ending: '.zip', content: zipOf(parts) };
}

/** Weekdays, among them the first of a month, and one Saturday. */
const FED_DAYS = ['2001-12-31', '2002-01-01', '2002-01-02', '2002-01-03', '2002-01-05'];

/** A table of the H.10. */
export function fed(random: Random): TextFile {
  const countries = random.some(
    ['Australia', random.chance(0.1) ? 'Germany' : 'Canada', 'Euro', 'Japan', 'United Kingdom'],
    1,
    4,
  );
  const cells = ['0.9539', '0.71', '0.6870', '0.69', '', 'ND', '', '0', 'x'];
  const rows = random
    .some(FED_DAYS.slice(0, random.chance(0.08) ? 5 : 4), 1, 4)
    .map((day) => [
      day,
      ...countries.map(() => random.pick(random.chance(0.97) ? cells.slice(0, 7) : cells)),
    ]);
  if (random.chance(0.05)) rows.push(rows[0] ?? []);
  const header = [random.pick(['Date', 'Data']), ...countries];
  if (random.chance(0.05)) header.push(random.pick(['Country', 'Japann', countries[0] ?? '']));
  const text = [header, ...rows].map((row) => `${row.join(',')}\n`).join('');
  return { ending: '.csv', content: spoiled(random, text, 0.08) };
}

const PRICE_CELLS = ['25815', '"25,815"', 'e21495', 'W', 'NA', '25000', '>50', '', '24000.5'];
const LIST = 'release,market,series,year,value,currency_code_as_published,unit,estimated';

function salient(random: Random, release: number): string {
  const [commodity, header] = random.pick([
    ['Nickel', 'USprod_Mine_t,Price_dt,Price_dlb,NIR_pct'],
    ['Nickel', 'Imports_t,Price_LME_dt,Price_dlb,NIR_pct'],
    ['Cobalt', 'USprod_t,Price_spot_dlb,Price_LME_cash_dlb,NIR_pct'],
    ['Copper', 'USprod_t,Price_US_producer_ctslb,Price_COMEX_ctslb,Price_LME_ctslb'],
    ['Nickel', 'USprod_t,Price_Rotterdam_dt,Price_dlb,NIR_pct'],
    ['Manganese', 'USprod_t,Price_CN_CIF_dt,Price_other_x,NIR_pct'],
  ] as const);
  const rows = random.some([2020, 2021, 2022, 2023], 1, 4).map((year) => {
    const cells = Array.from({ length: 3 }, () =>
      random.chance(0.9) ? random.pick(PRICE_CELLS.slice(0, 6)) : random.pick(PRICE_CELLS),
    );
    return `MCS${release},${commodity},${year},17500,${cells.join(',')}`;
  });
  if (random.chance(0.05)) rows.push(`MCS${release - 1},${commodity},2019,1,1,1,1`);
  const source = random.pick(['DataSource', 'Source']);
  return `\ufeff${[`${source},Commodity,Year,${header}`, ...rows].join('\r\n')}\r\n`;
}

/** A table of the USGS. */
export function usgs(random: Random): TextFile {
  const release = random.pick([2022, 2024, 2025, 2026]);
  if (random.chance(0.7)) {
    return { ending: '.csv', content: spoiled(random, salient(random, release), 0.06) };
  }
  const rows = random.some([2019, 2020, 2021], 1, 3).map((year) => {
    const name = random.chance(0.9) ? 'Copper grade A, LME cash' : 'Copper grade B';
    const value = random.pick(['280', '281.5', '279.80', 'x']);
    return `MCS${release},copper,"${name}",${year},${value},USc,lb,false`;
  });
  return { ending: '.csv', content: spoiled(random, `${[LIST, ...rows].join('\r\n')}\r\n`, 0.06) };
}

const DAYS = ['February 03, 2020', 'March 03, 2020'];

/** The workbook of the World Bank. */
export function worldbank(random: Random): TextFile {
  const cellOf = (): TestCell =>
    random.weighted<TestCell>([
      [5, n('1631')],
      [3, n('511.47000000000003')],
      [2, n('1.5310000000000001E3')],
      [2, '…'],
      [1, '...'],
      [0.05, 'x'],
      [0.05, null],
      [0.05, n('100000')],
    ]);
  const months = random.some(['2019M11', '2019M12', '2020M01', '2020M02'], 1, 4);
  const rows = months.map((month) => [
    random.chance(0.03) ? '2020M13' : month,
    ...Array.from({ length: 5 }, cellOf),
  ]);
  const units = [null, '($/kg)', '($/mt)', '($/mt)', random.chance(0.04) ? '($/lb)' : '($/mt)'];
  const names = [null, 'Tea', 'Aluminum', 'Potash **', random.chance(0.04) ? 'Tin' : 'Copper'];
  const day = random.pick([
    'February 03, 2020',
    'March 03, 2020',
    'April 02, 2020',
    'Soon 1, 2020',
  ]);
  const content = pinkSheet({
    updated: `Updated on ${random.chance(0.1) ? day : random.pick(DAYS)}`,
    names: [...names, 'Nickel **', null],
    units: [...units, '($/mt)'],
    rows,
  });
  return { ending: '.xlsx', content };
}

/** A table with its mapping. */
interface MappedTable {
  readonly file: TextFile;
  readonly mapping: string;
}

const cellsOf = (random: Random, wrong: readonly string[], right: readonly string[]): string =>
  random.pick(random.chance(0.06) ? wrong : right);

/** A code in each row, with the currency and unit as published. */
function codeRows(random: Random): MappedTable {
  const rows = Array.from({ length: random.int(1, 6) }, () => {
    const [code, currency, unit] = random.pick([
      ['OR-NI-1', 'USD', 't'],
      ['OR-NI-1', 'USD', 't'],
      ['OR-NI-2', 'EUR', 't'],
      ['OR-LI-1', 'USc', 'lb'],
      ['OR-AL-1', 'USD', 'kg'],
      ['OR-NI-1', 'EUR', 't'],
      ['NO-SUCH', 'USD', 't'],
    ] as const);
    const value = cellsOf(random, ['1,23', 'x', '100.5'], ['100', '101,5', '1.100,25', '']);
    const [year, month, day] = dayOf(random).split('-');
    const date = cellsOf(random, ['31.02.2026', '2026'], [`${day}.${month}.${year}`]);
    return [code, date, value, currency, unit].join(';');
  });
  const mapping = `text: { delimiter: semicolon }
code: { column: Code }
date: { column: Day, pattern: dd.MM.yyyy }
mid: Price
published: { currency: { column: Currency }, unit: { column: Unit } }
numbers: { decimal: comma, thousands: point }
publishedAt: { time: "16:00", offset: Z, days: 1 }
`;
  const text = `Code;Day;Price;Currency;Unit\n${rows.join('\n')}\n`;
  return { file: { ending: '.csv', content: spoiled(random, text, 0.05) }, mapping };
}

/** A column for each price, one of which the mapping describes; text or a workbook. */
function priceColumns(random: Random): MappedTable {
  const days = random.some(['2026-01-01', '2026-01-02', '2026-01-05', '2026-01-08'], 1, 4);
  const rows = days.map((day) => [
    day,
    ...Array.from({ length: 3 }, () => cellsOf(random, ['x', '-', '1e2'], ['100', '101.5', ''])),
  ]);
  const vintage = random.chance(0.5) ? 'vintage: { constant: "2026-01-20" }\n' : '';
  const mapping = `${vintage}date: { column: Day }
columns:
  Nickel: OR-NI-1
  Aluminium: OR-AL-1
  Other: OR-NEW-3
prices:
  - { code: OR-NEW-3, market: nickel, name: "Mapped price", product: Nickel matte,
      priceCategory: Spot, priceType: Price, frequency: Weekly, currency: USD, unitOfMeasure: t }
`;
  const header = ['Day', 'Nickel', 'Aluminium', random.chance(0.04) ? 'Else' : 'Other'];
  const lines = [header, ...rows];
  if (random.chance(0.5)) {
    const text = lines.map((line) => `${line.join(',')}\n`).join('');
    return { file: { ending: '.csv', content: spoiled(random, text, 0.05) }, mapping };
  }
  const cells = lines.flatMap((line, row) =>
    line.flatMap((text, column) => {
      const place = `${'ABCD'[column]}${row + 1}`;
      if (text === '') return [];
      return [[place, /^\d+(\.\d+)?$/.test(text) ? num(text) : text] as const];
    }),
  );
  const sheet = Object.fromEntries(cells);
  const content = random.chance(0.95)
    ? sheetOf(sheet)
    : bookOf({ sheets: { One: sheet, Two: sheet } });
  return { file: { ending: '.xlsx', content }, mapping };
}

/** A date over each column. */
function dateColumns(random: Random): MappedTable {
  const codes = random.some(['OR-NI-1', 'OR-AL-1', 'OR-NI-2', 'NO-SUCH'], 1, 3);
  const rows = codes
    .filter((code) => code !== 'NO-SUCH' || random.chance(0.3))
    .map((code) => [
      code,
      ...Array.from({ length: 3 }, () => cellsOf(random, ['x'], ['100', '105', ''])),
    ]);
  const mapping = `code: { column: Series }
dateColumns: { first: 2, pattern: yyyy-MM }
numbers: { missing: ["", "-"] }
`;
  const dates = ['2025-10', '2025-11', random.chance(0.05) ? 'Dec' : '2025-12'];
  const text = [['Series', ...dates], ...rows].map((line) => `${line.join(',')}\n`).join('');
  return { file: { ending: '.csv', content: spoiled(random, text, 0.05) }, mapping };
}

/** Any of the three shapes; some mappings are wrong. */
export function mappedTable(random: Random): MappedTable {
  const { file, mapping } = random.pick([codeRows, priceColumns, dateColumns])(random);
  if (random.chance(0.96)) return { file, mapping };
  return { file, mapping: random.pick([`${mapping}other: 1\n`, mapping.replace('{', '[')]) };
}
