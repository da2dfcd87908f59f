import { didYouMean } from '../../catalog/nearest.ts';
import { type LineBytes, readableLine } from '../parsing/lines.ts';
import { csvRowsOrLines, type SourceRow } from '../parsing/rows.ts';
import type { FileFormat, ReadContext } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import {
  ATTRIBUTES,
  type Attributes,
  POINT_FIELDS,
  type PointFieldIndexes,
  type PointLines,
  type SourceRecord,
} from '../records/source-record.ts';

/** The columns of a file. */
interface Layout {
  readonly point: PointFieldIndexes;
  /** Columns with attributes of the price. */
  readonly attributes: readonly (readonly [name: string, index: number])[];
}

function checkHeader({ line, fields }: SourceRow): void {
  const known = [...POINT_FIELDS, ...ATTRIBUTES];
  for (const [index, name] of fields.entries()) {
    const place = { line, column: name, value: name };
    if (!known.includes(name)) {
      const hint =
        fields.length === 1 && /[;\t]/.test(name)
          ? '; columns are separated by commas: load table --map reads other separators'
          : didYouMean(name, known);
      throw new Refusal('unknown_column', `There is no column of this name${hint}`, place);
    }
    if (fields.indexOf(name) < index) {
      throw new Refusal('unknown_column', 'The column appears twice', place);
    }
  }
  const needs = (name: string, why: string): void => {
    if (fields.includes(name)) return;
    throw new Refusal('missing_column', `The column ${name} is missing: ${why}`, { line });
  };
  needs('code', 'it identifies the price of a row');
  if (fields.includes('date') || !fields.some((name) => ATTRIBUTES.includes(name))) {
    needs('mid', 'a row with a date needs it');
    needs('date', 'every value needs a date');
  }
}

function layoutOf(header: SourceRow): Layout {
  checkHeader(header);
  const { fields } = header;
  const at = (name: string): number => fields.indexOf(name);
  return {
    point: {
      width: fields.length,
      code: at('code'),
      date: at('date'),
      low: at('low'),
      mid: at('mid'),
      high: at('high'),
      publishedAt: at('publishedAt'),
    },
    attributes: ATTRIBUTES.flatMap((name) => (at(name) < 0 ? [] : [[name, at(name)] as const])),
  };
}

/** The description in a row; null if all its fields are empty. */
function attributesOf(fields: readonly string[], layout: Layout): Attributes | null {
  const attributes: Record<string, string | null> = {};
  let isEmpty = true;
  for (const [name, index] of layout.attributes) {
    attributes[name] = fields[index] || null;
    if (fields[index]) isEmpty = false;
  }
  return isEmpty ? null : attributes;
}

/** Adds the records of one row: a description of its price, a point, or both. */
function addRow(row: SourceRow, layout: Layout, records: SourceRecord[], problems: Problems): void {
  const { line, fields } = row;
  if (fields.length !== layout.point.width) {
    const message = `The row has ${fields.length} fields, the header ${layout.point.width}`;
    problems.reject('wrong_column_count', message, { line });
    return;
  }
  const { point } = layout;
  const textOf = (index: number): string | null => fields[index] || null;
  const code = fields[point.code] ?? '';
  const attributes = layout.attributes.length > 0 ? attributesOf(fields, layout) : null;
  if (attributes) records.push({ kind: 'price', line, code, attributes, whenPresent: 'compare' });
  const date = fields[point.date] ?? '';
  const mid = textOf(point.mid);
  const low = textOf(point.low);
  const high = textOf(point.high);
  const publishedAt = textOf(point.publishedAt);
  const holdsPoint = date !== '' || mid !== null || low !== null || high !== null;
  if (holdsPoint || !attributes) {
    records.push({ kind: 'point', line, code, date, low, mid, high, publishedAt });
  }
}

/** Lines of points, each of which may also be read as records. */
function pointLines({ first, bytes }: LineBytes, layout: Layout, problems: Problems): PointLines {
  const recordsOf = (line: number, lineBytes: Buffer): readonly SourceRecord[] => {
    const text = readableLine(lineBytes, line, problems);
    if (text === null || text === '') return [];
    const records: SourceRecord[] = [];
    addRow({ line, fields: text.split(',') }, layout, records, problems);
    return records;
  };
  return { line: first, bytes, columns: layout.point, recordsOf };
}

/** Reads the service's own CSV format, described in `docs/loading.md`. */
async function* read({ file, problems }: ReadContext): AsyncGenerator<SourceRecord[] | PointLines> {
  let layout: Layout | null = null;
  const takesLines = (): boolean => layout?.attributes.length === 0;
  for await (const part of csvRowsOrLines(file.bytes(), problems, takesLines)) {
    if (!Array.isArray(part)) {
      yield pointLines(part, layout as unknown as Layout, problems);
      continue;
    }
    const records: SourceRecord[] = [];
    for (const row of part) {
      if (layout === null) layout = layoutOf(row);
      else addRow(row, layout, records, problems);
    }
    yield records;
  }
}

export const csv: FileFormat = {
  lineage: ['csv', 'ndjson', 'table'],
  needsVintage: false,
  read,
};
