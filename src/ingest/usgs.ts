import { type CsvRow, csvRows } from './csv-rows.ts';
import { openSource } from './file.ts';
import type { Format, ReadContext } from './format.ts';
import { Refusal } from './problems.ts';
import type { SourceRecord } from './records.ts';
import { type RowReader, readerBelow } from './usgs-tables.ts';
import { releaseDay, releaseOf } from './usgs-values.ts';

/** The release of a row, which every row names first. @throws Refusal when it does not */
function releaseIn({ line, fields }: CsvRow, known: number | null): number {
  const [text = ''] = fields;
  const release = releaseOf(text);
  const place = { line, column: 'release', value: text };
  if (release === null) {
    throw new Refusal('invalid_vintage', 'The release is not written as MCS2025', place);
  }
  if (known !== null && release !== known) {
    const message = `The file is of release MCS${known}, and a file is of one release`;
    throw new Refusal('invalid_vintage', message, place);
  }
  return release;
}

/**
 * Reads tables of the Mineral Commodity Summaries of the U.S. Geological Survey, as published: the
 * salient table of a commodity, or a list of prices that was copied out of a release. A value is
 * that of a year and is dated on its last day. It counts as published on the day of the release,
 * which is also the vintage: a table says no more of it than the year of the release.
 */
async function* read({ file, problems }: ReadContext): AsyncGenerator<SourceRecord[]> {
  let reader: RowReader | null = null;
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
        const text = row.fields.join(',');
        problems.reject('wrong_column_count', message, { line: row.line, text });
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

/** The release that a file is of, as its first rows name it; "" for a file that does not. */
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

export const usgs: Format = {
  title: 'U.S. Geological Survey, Mineral Commodity Summaries, annual prices',
  accepts: 'the original salient tables (mcs2025-nicke_salient.csv …) or a list of prices, as CSV',
  holds: 'points',
  lineage: ['usgs'],
  needsVintage: true,
  inOrder,
  read,
};
