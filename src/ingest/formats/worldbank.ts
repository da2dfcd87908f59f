import { dayOfWords, firstDayAfterMonthOf, isDay, lastDayOf } from '../parsing/dates.ts';
import { cellDecimal } from '../parsing/decimals.ts';
import { openWorkbook, sheetOf, sheetRows } from '../parsing/xlsx.ts';
import type { Cell, SheetRow } from '../parsing/xlsx-rows.ts';
import type { Attributes, PointRecord, SourceRecord } from '../records.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import type { Format, ReadContext } from './format.ts';

/** A column of the workbook that becomes a price. */
interface WorldBankSeries {
  /** Name of the column, without the mark of a footnote. */
  readonly name: string;
  readonly unit: string;
  readonly code: string;
  readonly attributes: Attributes;
}

const specificationOf = (basis: string): string =>
  JSON.stringify(
    [
      { name: 'basis', value: basis },
      { name: 'source', value: 'The World Bank: Commodity Price Data (The Pink Sheet)' },
      { name: 'licence', value: 'CC BY 4.0' },
      { name: 'changes', value: 'values as published, dated on the last day of the month' },
    ].map((entry, index) => ({ ...entry, order: index + 1 })),
  );

const seriesOf = (
  name: string,
  code: string,
  basis: string,
  attributes: Attributes,
): WorldBankSeries => ({
  name,
  unit: '($/mt)',
  code,
  attributes: {
    priceCategory: 'Exchange',
    priceType: 'Price',
    frequency: 'Monthly',
    currency: 'USD',
    unitOfMeasure: 'tonne',
    assessmentLaunchedAt: '1960-01-31',
    specification: specificationOf(basis),
    incoterm: 'In-warehouse',
    region: 'Global',
    ...attributes,
  },
});

/** The columns that are loaded, and the attributes with which their prices are created. */
export const SERIES: readonly WorldBankSeries[] = [
  seriesOf(
    'Aluminum',
    'CP-AL-9001',
    'unalloyed primary ingots, at least 99.7% Al; settlement price from 2005, cash price before',
    {
      market: 'aluminium',
      name: 'Aluminium, exchange cash, monthly average',
      shortName: 'Al exch cash avg',
      product: 'Primary aluminium P1020A',
    },
  ),
  seriesOf(
    'Copper',
    'CP-CU-9001',
    'grade A cathodes and wire bars, at least 99.9935% Cu; settlement price',
    {
      market: 'copper',
      name: 'Copper grade A, exchange cash, monthly average',
      shortName: 'Cu exch cash avg',
      product: 'Copper cathode, grade A',
    },
  ),
  seriesOf(
    'Nickel',
    'CP-NI-9001',
    'cathodes, at least 99.8% Ni; settlement price from 2005, cash price before',
    {
      market: 'nickel',
      name: 'Nickel, exchange cash, monthly average',
      shortName: 'Ni exch cash avg',
      product: 'Nickel metal, primary',
      purity: '99.8% Ni min',
      service: 'None',
    },
  ),
];

const SHEET = 'Monthly Prices';
const MISSING = new Set(['…', '...', '..']);
/** Titles take a few rows; a sheet without the names by then has another layout. */
const TITLE_ROWS_MAX = 50;

interface Column {
  readonly letters: string;
  readonly series: WorldBankSeries;
}

/** A name without the mark of a footnote. */
const plainName = (text: string): string => text.replace(/[\s*]+$/, '').trim();

/** The columns of our series, when a row is the one with the names. */
function columnsOf(row: SheetRow): Column[] | null {
  const lettersOf = (name: string): string[] =>
    [...row.cells].filter(([, cell]) => plainName(cell.text) === name).map(([letters]) => letters);
  if (lettersOf('Aluminum').length === 0) return null;
  return SERIES.map((series) => {
    const [letters, second] = lettersOf(series.name);
    if (letters === undefined || second !== undefined) {
      const found = second === undefined ? 'no column' : 'more than one column';
      throw new Refusal('invalid_layout', `The sheet has ${found} "${series.name}"`, {
        line: row.number,
      });
    }
    return { letters, series };
  });
}

/** The units stand in the row after the names; a price in another unit would be a false price. */
function checkUnits(row: SheetRow, expected: number, columns: readonly Column[]): void {
  for (const { letters, series } of columns) {
    const unit = row.cells.get(letters)?.text.trim() ?? '';
    if (unit === series.unit && row.number === expected) continue;
    throw new Refusal('unit_mismatch', `${series.name} must be in ${series.unit}`, {
      line: row.number,
      column: `${letters} ${series.name}`,
      value: unit,
    });
  }
}

/** "Updated on June 02, 2026" in the titles: the edition, and so the vintage. */
function vintageOf(row: SheetRow): SourceRecord[] {
  for (const [column, { text }] of row.cells) {
    const words = /^\s*updated on\s+(.+?)\s*$/i.exec(text)?.[1];
    if (words === undefined) continue;
    const date = dayOfWords(words);
    if (date !== null) return [{ kind: 'vintage', date }];
    const place = { line: row.number, column, value: text };
    throw new Refusal('invalid_vintage', 'The day of the edition cannot be read', place);
  }
  return [];
}

/** The number in a cell as a decimal, null for a missing value; undefined when it is neither. */
function numberIn(cell: Cell): string | null | undefined {
  if (cell.isFormula) return undefined;
  if (cell.type === 'number') return cellDecimal(cell.text) ?? undefined;
  return cell.type === 'text' && MISSING.has(cell.text.trim()) ? null : undefined;
}

function pointOf(
  row: SheetRow,
  column: Column,
  date: string,
  problems: Problems,
): PointRecord | null {
  const place = { line: row.number, column: `${column.letters} ${column.series.name}` };
  const cell = row.cells.get(column.letters);
  if (!cell) {
    problems.reject('missing_value', 'The cell is empty; a missing value is written "…"', place);
    return null;
  }
  const mid = numberIn(cell);
  if (mid === null) return null;
  if (mid === undefined) {
    const what = cell.isFormula ? 'holds a formula' : 'is not a number';
    problems.reject('invalid_number', `The cell ${what}`, { ...place, value: cell.text });
    return null;
  }
  const publishedAt = `${firstDayAfterMonthOf(date)}T00:00:00Z`;
  return {
    kind: 'point',
    line: row.number,
    code: column.series.code,
    date,
    low: null,
    mid,
    high: null,
    publishedAt,
  };
}

/** The points of a row of data; none for a note below the table. */
function pointsOf(row: SheetRow, columns: readonly Column[], problems: Problems): PointRecord[] {
  const period = row.cells.get('A')?.text.trim() ?? '';
  const [, year = '', month = ''] = /^(\d{4})M(\d{2})$/.exec(period) ?? [];
  const date = lastDayOf(year, month);
  if (isDay(date)) {
    return columns.flatMap((column) => pointOf(row, column, date, problems) ?? []);
  }
  const held = columns.filter(({ letters }) => row.cells.has(letters)).length;
  if (held > 0) {
    problems.rejected += held;
    problems.add('invalid_date', 'The row has values but no period such as 1960M01', {
      line: row.number,
      column: 'A',
      value: period,
    });
  }
  return [];
}

/**
 * Reads the monthly workbook of the World Bank ("Pink Sheet"), as published: sheet and columns
 * are found by their names, a value is dated on the last day of its month. `publishedAt` is the
 * start of the month that follows, the earliest moment at which an average of the month can be
 * known: the workbook says nothing of it. That is the time of a first publication; a correction
 * was published with the edition that brings it (`correctedAt` below).
 */
async function* read({ file, problems }: ReadContext): AsyncGenerator<SourceRecord[]> {
  const workbook = await openWorkbook(file);
  let columns: Column[] | null = null;
  let namesRow = 0;
  let hasUnits = false;
  for await (const rows of sheetRows(workbook, sheetOf(workbook, SHEET))) {
    const records: SourceRecord[] = [];
    for (const row of rows) {
      if (columns === null) {
        records.push(...vintageOf(row));
        columns = columnsOf(row);
        namesRow = row.number;
        if (columns !== null) records.push(...SERIES.map((each) => priceOf(each, namesRow)));
        else if (namesRow >= TITLE_ROWS_MAX) throw withoutNames();
      } else if (!hasUnits) {
        checkUnits(row, namesRow + 1, columns);
        hasUnits = true;
      } else records.push(...pointsOf(row, columns, problems));
    }
    yield records;
  }
  if (columns === null) throw withoutNames();
}

const withoutNames = (): Refusal =>
  new Refusal('invalid_layout', `The sheet "${SHEET}" has no row with the name "Aluminum"`);

const priceOf = ({ code, attributes }: WorldBankSeries, line: number): SourceRecord => ({
  kind: 'price',
  line,
  code,
  attributes,
  whenPresent: 'keep',
});

export const worldbank: Format = {
  title: 'World Bank commodity prices, monthly ("Pink Sheet")',
  accepts: 'the original workbook, CMO-Historical-Data-Monthly.xlsx',
  lineage: ['worldbank'],
  needsVintage: true,
  correctedAt: 'vintage',
  read,
};
