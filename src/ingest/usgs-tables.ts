import type { CsvRow } from './csv-rows.ts';
import { offer } from './offer.ts';
import { type Problems, Refusal } from './problems.ts';
import type { SourceRecord } from './records.ts';
import { checkOrder, columnsOf, type SeriesColumn } from './usgs-columns.ts';
import type { UsgsSeries } from './usgs-price.ts';
import { USGS_SERIES } from './usgs-series.ts';
import { describedBy, pointOf } from './usgs-values.ts';

/**
 * Reads a row of one table: descriptions and points. Problems are noted.
 * @throws Refusal when the table makes no sense from here on
 */
export type RowReader = (row: CsvRow, release: number, problems: Problems) => SourceRecord[];

/** The columns of a table with a row for each series and year, in their order. */
const LIST = [
  'release',
  'market',
  'series',
  'year',
  'value',
  'currency_code_as_published',
  'unit',
  'estimated',
];

const trimmed = (fields: readonly string[]): string[] => fields.map((each) => each.trim());

function checkContinued({ lastRelease, code }: UsgsSeries, release: number, line: number): void {
  if (lastRelease === null || release <= lastRelease) return;
  const message = `From release ${lastRelease + 1} on this price is another and no more ${code}`;
  throw new Refusal('unit_mismatch', message, { line, value: `MCS${release}` });
}

/** The series of a commodity that salient tables hold. @throws Refusal when there is none */
function seriesOf(commodity: string, line: number): UsgsSeries[] {
  const held = USGS_SERIES.filter((each) => each.commodity === commodity && each.column !== null);
  if (held.length > 0) return held;
  const hint = offer(commodity, new Set(USGS_SERIES.map((each) => each.commodity)));
  const place = { line, column: 'Commodity', value: commodity };
  throw new Refusal('invalid_layout', `No price of this commodity is loaded${hint}`, place);
}

/** A salient table: one commodity, a row for each year, a column for each price. */
function salientReader(header: CsvRow): RowReader {
  const names = trimmed(header.fields);
  let commodity: string | null = null;
  let columns: readonly SeriesColumn[] = [];
  return (row, release, problems) => {
    const { line, fields } = row;
    const [, name = '', year = ''] = trimmed(fields);
    const heading = { line: header.line, names, release };
    const records: SourceRecord[] = [];
    if (commodity === null) {
      const held = seriesOf(name, line);
      for (const series of held) checkContinued(series, release, line);
      columns = columnsOf(held, heading, problems);
      commodity = name;
      records.push(...held.flatMap((series) => describedBy(series, line)));
    }
    if (name !== commodity) {
      const message = `The table is of ${commodity}, and a salient table of one commodity`;
      throw new Refusal('invalid_layout', message, { line, column: 'Commodity', value: name });
    }
    checkOrder(columns, heading, row);
    for (const { series, at } of columns) {
      const place = { line, column: names[at] ?? '', year, release };
      records.push(...pointOf(series, fields[at] ?? '', place, problems));
    }
    return records;
  };
}

/** The series of a row of a list; null after noting why there is none. */
function listed({ line, fields }: CsvRow, problems: Problems): UsgsSeries | null {
  const [, market, title = '', , , currency = '', unit = ''] = trimmed(fields);
  const ofMarket = USGS_SERIES.filter((each) => each.market === market);
  const named = ofMarket.filter((each) => each.title === title);
  const series = named.find((each) => each.unit === unit);
  const isMoneyOf = (each: UsgsSeries): boolean => currency === (each.isInCents ? 'USc' : 'USD');
  if (series && isMoneyOf(series)) return series;
  if (named.length === 0) {
    const hint = offer(
      title,
      ofMarket.map((each) => each.title),
    );
    const place = { line, column: 'series', value: title };
    problems.reject('unknown_code', `No price of this series is loaded${hint}`, place);
    return null;
  }
  const terms = named.map((each) => `${each.isInCents ? 'USc' : 'USD'}/${each.unit}`);
  const place = { line, column: 'unit', value: `${currency}/${unit}` };
  problems.reject('unit_mismatch', `The series is in ${terms.join(' or ')}`, place);
  return null;
}

/** A list: a row for each series and year, as it is copied out of the printed summaries. */
function listReader(): RowReader {
  const described = new Set<UsgsSeries>();
  return (row, release, problems) => {
    const series = listed(row, problems);
    if (!series) return [];
    checkContinued(series, release, row.line);
    const opened = described.has(series) ? [] : describedBy(series, row.line);
    described.add(series);
    const [, , , year = '', value = ''] = row.fields;
    const place = { line: row.line, column: 'value', year: year.trim(), release };
    return [...opened, ...pointOf(series, value, place, problems)];
  };
}

/** What reads the rows below a header. @throws Refusal for a table of another kind */
export function readerBelow(header: CsvRow): RowReader {
  const names = trimmed(header.fields);
  if (names.join() === LIST.join()) return listReader();
  const [source = '', commodity, year] = names;
  const isSalient = /^(Data)?Source$/.test(source) && commodity === 'Commodity' && year === 'Year';
  if (isSalient) return salientReader(header);
  const what = names.includes('Country') ? 'This table is by country' : 'This is another table';
  const message = `${what}; one of salient statistics begins with DataSource, Commodity, Year`;
  const value = names.filter((name) => name !== '').join(', ');
  throw new Refusal('invalid_layout', message, { line: header.line, value });
}
