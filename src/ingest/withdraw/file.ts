import { type CsvRow, csvRows } from '../csv-rows.ts';
import { isDay } from '../dates.ts';
import type { SourceFile } from '../file.ts';
import { type Problems, Refusal } from '../problems.ts';
import { isCode } from '../subjects.ts';

/** A point that is named: the line of the file, or 0 for one of the command line. */
export interface NamedPoint {
  readonly line: number;
  readonly code: string;
  readonly date: string;
}

/** Where the two columns stand. */
interface Layout {
  readonly code: number;
  readonly date: number;
}

/** @throws Refusal for other columns than these two: a file of values is for loading */
function layoutOf({ line, fields }: CsvRow): Layout {
  const code = fields.indexOf('code');
  const date = fields.indexOf('date');
  if (fields.length === 2 && code >= 0 && date >= 0) return { code, date };
  const message = 'The file has to have the columns code and date, and no others';
  const value = fields.join(',');
  throw new Refusal(value === '' ? 'missing_column' : 'unknown_column', message, { line, value });
}

/** Notes what is wrong with a code or a day. */
export function isRight({ line, code, date }: NamedPoint, problems: Problems): boolean {
  const place = line === 0 ? {} : { line };
  if (!isCode(code)) {
    const message = 'A code has 1 to 64 visible ASCII characters';
    problems.reject('invalid_code', message, { ...place, column: 'code', value: code });
    return false;
  }
  if (isDay(date)) return true;
  const message = 'The date is not a real day, written YYYY-MM-DD';
  problems.reject('invalid_date', message, { ...place, column: 'date', value: date });
  return false;
}

/**
 * Reads a CSV file with the columns `code` and `date`, in constant memory.
 * @throws Refusal for a file that is something else
 */
export async function* pointsIn(
  file: SourceFile,
  problems: Problems,
): AsyncGenerator<NamedPoint[]> {
  let layout: Layout | null = null;
  for await (const rows of csvRows(file.bytes(), problems)) {
    const points: NamedPoint[] = [];
    for (const row of rows) {
      if (layout === null) layout = layoutOf(row);
      else if (row.fields.length !== 2) {
        const message = `The row has ${row.fields.length} fields, the header 2`;
        problems.reject('wrong_column_count', message, { line: row.line });
      } else {
        const { code, date } = layout;
        const [first = '', second = ''] = row.fields;
        const [codeText, dateText] = code < date ? [first, second] : [second, first];
        points.push({ line: row.line, code: codeText, date: dateText });
      }
    }
    yield points.filter((point) => isRight(point, problems));
  }
}
