import { didYouMean } from '../../catalog/nearest.ts';
import { csvRows, type SourceRow } from '../parsing/rows.ts';
import type { FileFormat, ReadContext } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import { openSource } from '../records/source-file.ts';
import type { SourceRecord } from '../records/source-record.ts';
import { checkOrder, columnsOf, type SeriesColumn } from './usgs-columns.ts';
import {
  describedBy,
  pointOf,
  releaseDay,
  releaseOf,
  USGS_SERIES,
  type UsgsSeries,
} from './usgs-series.ts';

/**
 * Reads a table row into descriptions and points, and reports problems.
 * @throws Refusal if the rest of the table is unreadable
 */
type UsgsRowReader = (row: SourceRow, release: number, problems: Problems) => SourceRecord[];

/** The columns of a list of prices, in order. */
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
  if (lastRelease === undefined || release <= lastRelease) return;
  const message = `From release ${lastRelease + 1} on this series is another price than ${code}`;
  throw new Refusal('unit_mismatch', message, { line, value: `MCS${release}` });
}

/** The series of a commodity in salient tables. @throws Refusal if there is none */
function seriesOf(commodity: string, line: number): UsgsSeries[] {
  const ofCommodity = USGS_SERIES.filter((each) => each.commodity === commodity && each.column);
  if (ofCommodity.length > 0) return ofCommodity;
  const hint = didYouMean(commodity, new Set(USGS_SERIES.map((each) => each.commodity)));
  const place = { line, column: 'Commodity', value: commodity };
  throw new Refusal('invalid_layout', `No price of this commodity is loaded${hint}`, place);
}

/** Reads a salient table: one commodity, a row for each year, a column for each price. */
function salientReader(header: SourceRow): UsgsRowReader {
  const names = trimmed(header.fields);
  let commodity: string | null = null;
  let columns: readonly SeriesColumn[] = [];
  return (row, release, problems) => {
    const { line, fields } = row;
    const [, name = '', year = ''] = trimmed(fields);
    const heading = { line: header.line, names, release };
    const records: SourceRecord[] = [];
    if (commodity === null) {
      const ofCommodity = seriesOf(name, line);
      for (const series of ofCommodity) checkContinued(series, release, line);
      columns = columnsOf(ofCommodity, heading, problems);
      commodity = name;
      records.push(...ofCommodity.flatMap((series) => describedBy(series, line)));
    }
    if (name !== commodity) {
      const message = `The table is about ${commodity}; a salient table holds one commodity`;
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

/** The series of a list row; null after reporting a problem. */
function seriesOfRow({ line, fields }: SourceRow, problems: Problems): UsgsSeries | null {
  const [, market, title = '', , , currency = '', unit = ''] = trimmed(fields);
  const ofMarket = USGS_SERIES.filter((each) => each.market === market);
  const named = ofMarket.filter((each) => each.title === title);
  const series = named.find((each) => each.unit === unit);
  const isMoneyOf = (each: UsgsSeries): boolean => currency === (each.cents ? 'USc' : 'USD');
  if (series && isMoneyOf(series)) return series;
  if (named.length === 0) {
    const hint = didYouMean(
      title,
      ofMarket.map((each) => each.title),
    );
    const place = { line, column: 'series', value: title };
    problems.reject('unknown_code', `No price of this series is loaded${hint}`, place);
    return null;
  }
  const quotations = named.map((each) => `${each.cents ? 'USc' : 'USD'}/${each.unit}`);
  const place = { line, column: 'unit', value: `${currency}/${unit}` };
  problems.reject('unit_mismatch', `The series is in ${quotations.join(' or ')}`, place);
  return null;
}

/** Reads a list of prices copied from the printed summaries: a row for each series and year. */
function listReader(): UsgsRowReader {
  const described = new Set<UsgsSeries>();
  return (row, release, problems) => {
    const series = seriesOfRow(row, problems);
    if (!series) return [];
    checkContinued(series, release, row.line);
    const descriptions = described.has(series) ? [] : describedBy(series, row.line);
    described.add(series);
    const [, , , year = '', value = ''] = row.fields;
    const place = { line: row.line, column: 'value', year: year.trim(), release };
    return [...descriptions, ...pointOf(series, value, place, problems)];
  };
}

/** Selects the reader for a header. @throws Refusal for a table of another kind */
function readerBelow(header: SourceRow): UsgsRowReader {
  const names = trimmed(header.fields);
  if (names.join() === LIST.join()) return listReader();
  const [source = '', commodity, year] = names;
  const isSalient = /^(Data)?Source$/.test(source) && commodity === 'Commodity' && year === 'Year';
  if (isSalient) return salientReader(header);
  const what = names.includes('Country') ? 'This table is by country' : 'This is another table';
  const message = `${what}; a table of salient statistics begins with DataSource, Commodity, Year`;
  const value = names.filter((name) => name !== '').join(', ');
  throw new Refusal('invalid_layout', message, { line: header.line, value });
}

/** Parses the release, the first field of every row. @throws Refusal if it is invalid or differs */
function releaseIn({ line, fields }: SourceRow, known: number | null): number {
  const [text = ''] = fields;
  const release = releaseOf(text);
  const place = { line, column: 'release', value: text };
  if (release === null) {
    throw new Refusal('invalid_vintage', 'The release must be written like MCS2025', place);
  }
  if (known !== null && release !== known) {
    const message = `All rows must name one release; the rows above name MCS${known}`;
    throw new Refusal('invalid_vintage', message, place);
  }
  return release;
}

/**
 * Reads tables of the Mineral Commodity Summaries of the U.S. Geological Survey, as published: the
 * salient table of a commodity, or a list of prices copied from a release. An annual value is dated
 * on the last day of its year. Publication time and vintage are the day of the release: tables
 * state only its year.
 */
async function* read({ file, problems }: ReadContext): AsyncGenerator<SourceRecord[]> {
  let reader: UsgsRowReader | null = null;
  let width = 0;
  let release: number | null = null;
  for await (const rows of csvRows(file.bytes(), problems)) {
    const records: SourceRecord[] = [];
    for (const row of rows) {
      if (row.fields.every((field) => field.trim() === '')) continue;
      if (reader === null) {
        reader = readerBelow(row);
        width = row.fields.length;
      } else if (row.fields.length !== width) {
        const message = `The row has ${row.fields.length} fields, the header ${width}`;
        problems.reject('wrong_column_count', message, { line: row.line });
      } else {
        if (release === null) {
          release = releaseIn(row, null);
          records.push({ kind: 'vintage', date: releaseDay(release) });
        } else releaseIn(row, release);
        records.push(...reader(row, release, problems));
      }
    }
    yield records;
  }
}

/** The release that the first rows of a file name; "" if none. */
async function releaseNamed(path: string): Promise<string> {
  const file = await openSource(path);
  try {
    const { value } = await file.bytes().next();
    return /^"?(MCS\d{4})\b/m.exec(value?.toString('latin1') ?? '')?.[1] ?? '';
  } finally {
    await file.close();
  }
}

async function inOrder(paths: readonly string[]): Promise<string[]> {
  const named = await Promise.all(
    paths.map(async (path) => ({ path, release: await releaseNamed(path) })),
  );
  return named.sort((a, b) => a.release.localeCompare(b.release)).map(({ path }) => path);
}

export const usgs: FileFormat = {
  lineage: ['usgs'],
  needsVintage: true,
  inOrder,
  read,
};
