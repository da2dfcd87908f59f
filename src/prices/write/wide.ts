import type { DecimalColumn } from '../../conversion/columns.ts';
import { Problem } from '../../errors.ts';
import type { Plan } from '../plan/plan.ts';
import { ByteWriter } from './bytes.ts';
import type { Contents } from './contents.ts';
import { headerRow } from './rows.ts';

/** One column of a wide table: the mids of a price, in date order. */
interface WideColumn {
  readonly code: string;
  /** Currency and unit of the numbers, such as `USD/t`. */
  readonly currencyAndUnit: string;
  readonly day: Int32Array;
  readonly mid: DecimalColumn;
}

/** Name of the first column. */
const DATE = 'date';

/** Maximum bytes of a number that fits a double: one has up to 100 decimals. */
const CELL_BYTES_MAX = 112;

/** Bytes of a slice. A larger slice would be held in memory for each slow reader. */
const SLICE_BYTES = 65_536;

function wideColumn({ price, shown, points }: Contents): WideColumn {
  const { currency, unitOfMeasure } = shown;
  return {
    code: price.code,
    currencyAndUnit:
      currency === null ? unitOfMeasure.name : `${currency.iso}/${unitOfMeasure.name}`,
    // Copies: views would pin the other columns of the series.
    day: points?.day.slice() ?? new Int32Array(),
    mid: {
      scaled: points?.mid.scaled.slice() ?? new Float64Array(),
      scale: points?.mid.scale.slice() ?? new Uint8Array(),
      wide: points?.mid.wide ?? null,
    },
  };
}

function tooWide(cellsMax: number): Problem {
  const detail = `A wide table has at most ${cellsMax} cells; request fewer prices or days`;
  return new Problem('validation_failed', 'The table is too large; errors names the option', {
    errors: [{ pointer: '/options/layout', code: 'out_of_range', detail }],
  });
}

/** The size of a table whose columns are added one by one. */
class WideSize {
  readonly days = new Set<number>();
  readonly #cellsMax: number;
  #columns = 0;
  #values = 0;

  constructor(cellsMax: number) {
    this.#cellsMax = cellsMax;
  }

  /** Adds a column. @throws Problem `validation_failed` when the table is too large */
  add(day: Int32Array): void {
    for (const each of day) this.days.add(each);
    this.#columns += 1;
    this.#values += day.length;
    const cells = Math.max(this.#values, this.days.size * this.#columns);
    if (cells > this.#cellsMax) throw tooWide(this.#cellsMax);
  }
}

/** Reads the columns of a table. @throws Problem `validation_failed` when it is too large */
async function wideColumns(records: AsyncIterable<Contents>, cellsMax: number) {
  const columns: WideColumn[] = [];
  const size = new WideSize(cellsMax);
  for await (const contents of records) {
    const column = wideColumn(contents);
    columns.push(column);
    size.add(column.day);
  }
  return { columns, days: [...size.days].sort((one, other) => one - other) };
}

/** Reads the size of a table. @throws Problem `validation_failed` when it is too large */
export async function checkWide(records: AsyncIterable<Contents>, cellsMax: number): Promise<void> {
  const size = new WideSize(cellsMax);
  for await (const { points } of records) size.add(points?.day ?? new Int32Array());
}

/**
 * The codes. If currency or unit differ between columns, each code is followed by its own. Also in
 * a page, which does not know those of other pages, so that all pages have the same names.
 */
function namesOf(columns: readonly WideColumn[], isPage: boolean): string[] {
  const isUniform = new Set(columns.map(({ currencyAndUnit }) => currencyAndUnit)).size <= 1;
  return columns.map(({ code, currencyAndUnit }) =>
    isUniform && !isPage && code !== DATE ? code : `${code} [${currencyAndUnit}]`,
  );
}

/**
 * A table of mids with a row for each date and a column for each code, in slices.
 * @param records the contents of all records, in the order of the columns
 * @param cellsMax maximum number of cells, because the table is held in memory
 * @param lastRows writes the rows after the last date, with that number of columns
 * @throws Problem `validation_failed` when it has more, before the first slice
 */
export async function* wideSlices(
  { options, page }: Plan,
  records: AsyncIterable<Contents>,
  cellsMax: number,
  isJson: boolean,
  lastRows: (columns: number) => Iterable<Buffer>,
): AsyncGenerator<Buffer> {
  const { columns, days } = await wideColumns(records, cellsMax);
  const names = namesOf(columns, page.limit !== null || page.after !== null);
  const quote = isJson && options.decimalsAsText ? '"' : '';
  const keys = names.map((name) => Buffer.from(isJson ? `,${JSON.stringify(name)}:` : ','));
  const out = new ByteWriter(isJson ? 'null' : '');
  const [rowStart, dayEnd, rowEnd] = isJson ? ['{"date":"', '"', '}'] : ['', '', '\r\n'];
  const next = columns.map(() => 0);
  const keyBytes = keys.reduce((sum, { length }) => sum + length, 0);
  const room = keyBytes + 64 + CELL_BYTES_MAX * columns.length;
  yield isJson ? Buffer.from('[') : headerRow([DATE, ...names]);
  out.begin(SLICE_BYTES + room);
  for (const [row, day] of days.entries()) {
    out.reserve(room);
    if (isJson && row > 0) out.text(',');
    out.text(rowStart);
    out.day(day);
    out.text(dayEnd);
    for (const [place, { day: own, mid }] of columns.entries()) {
      const index = next[place] as number;
      out.put(keys[place] as Buffer);
      const hasValue = own[index] === day && !Number.isNaN(mid.scaled[index] as number);
      if (hasValue) out.text(quote);
      if (hasValue) out.number(mid, index, room);
      else out.decimal(Number.NaN, 0);
      if (hasValue) out.text(quote);
      if (own[index] === day) next[place] = index + 1;
    }
    out.text(rowEnd);
    if (out.written < SLICE_BYTES) continue;
    yield out.end();
    out.begin(SLICE_BYTES + room);
  }
  yield out.end();
  yield* lastRows(1 + columns.length);
  if (isJson) yield Buffer.from(']');
}
