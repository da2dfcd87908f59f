import type { Format } from '../../contract/schemas/formats.ts';
import { optionOf, PLAN_OPTION_NAMES } from '../../contract/schemas/options.ts';
import { textCell } from '../../std/csv.ts';
import type { Answer } from '../answer/answer.ts';
import type { Warning } from '../answer/warnings.ts';
import type { Plan } from '../plan/plan.ts';
import { WARNINGS_PER_SLICE } from './bytes.ts';
import { jsonWriter, ndjsonWriter } from './json.ts';
import { contentsOfAll, type Writer } from './points.ts';
import { columnsOf, headerRow, notationOf, recordRows } from './rows.ts';
import { checkTable, type TableSlices } from './table.ts';
import { checkWide, wideRows, wideSlices } from './wide.ts';

/** The bytes of an answer, in slices. An error midway is thrown, after incomplete bytes. */
export const writeAnswer = (answer: Answer): AsyncGenerator<Buffer> =>
  WRITERS[answer.context.plan.format].write(answer);

/**
 * Checks that the format of an answer can hold it, without writing it.
 * @throws Problem `validation_failed`, as `writeAnswer` does before the first slice
 */
export async function checkAnswer(answer: Answer): Promise<void> {
  await WRITERS[answer.context.plan.format].check(answer);
}

const isWide = ({ options }: Plan): boolean => options.layout === 'wide';

const NOTHING = Buffer.alloc(0);

/** `text/csv` of RFC 4180, with a header row. */
function csvWriter({ context: { plan } }: Answer): Writer {
  const notation = notationOf(plan, false);
  return {
    out: notation.out,
    start: () => [headerRow(columnsOf(plan), notation)],
    record: (context, contents) => recordRows(context, contents, notation),
    between: NOTHING,
    end: NOTHING,
  };
}

/** A flat JSON array with an object for each row. */
function rowsWriter({ context: { plan } }: Answer): Writer {
  const notation = notationOf(plan, true);
  return {
    out: notation.out,
    start: () => [Buffer.from('[')],
    record: (context, contents) => recordRows(context, contents, notation),
    between: Buffer.from(','),
    end: Buffer.from(']'),
  };
}

function* warningSlices(
  warnings: readonly Warning[],
  line: (warning: Warning) => string,
): Generator<Buffer> {
  for (let at = 0; at < warnings.length; at += WARNINGS_PER_SLICE) {
    const some = warnings.slice(at, at + WARNINGS_PER_SLICE);
    yield Buffer.from(some.map(line).join(''));
  }
}

/** The warnings after the last record, if the request wants them as rows. */
const requestedWarnings = ({ metadata, context }: Answer): readonly Warning[] =>
  context.plan.options.warnings === 'row' ? metadata.warnings : [];

/**
 * Warnings as the last rows of a CSV, each in the first cell after `# warning`. No code begins with
 * that text.
 */
const warningRows = (answer: Answer, columns: number): Iterable<Buffer> => {
  const { separator } = notationOf(answer.context.plan, false);
  return warningSlices(requestedWarnings(answer), ({ code, pointer, detail }) => {
    const cell = textCell(`# warning ${code} ${pointer}: ${detail}`);
    return `${cell}${separator.repeat(columns - 1)}\r\n`;
  });
};

/** Warnings as the last lines of NDJSON: objects with one member, `warning`. */
const warningLines = (answer: Answer): Iterable<Buffer> =>
  warningSlices(requestedWarnings(answer), (warning) => `${JSON.stringify({ warning })}\n`);

/** Writes an answer, in slices. @param last those after the records */
async function* written(
  { out, start, record, between, end }: Writer,
  answer: Answer,
  last: Iterable<Buffer> = [],
): AsyncGenerator<Buffer> {
  const { context, records } = answer;
  yield* start(answer);
  let count = 0;
  for await (const contents of contentsOfAll(context, records)) {
    if (count > 0) out.add(between);
    yield* record(context, contents);
    if (out.isFull) yield out.end();
    count += 1;
  }
  yield out.end();
  yield* last;
  yield end;
}

function wide(answer: Answer, isJson: boolean): AsyncGenerator<Buffer> {
  const { context, records } = answer;
  const notation = notationOf(context.plan, isJson);
  return wideSlices(context, contentsOfAll(context, records), (names) =>
    wideRows(notation, names, warningRows(answer, names.length)),
  );
}

const checkIfWide = async ({ context, records }: Answer): Promise<void> => {
  if (!isWide(context.plan)) return;
  await checkWide(contentsOfAll(context, records), context.wideCellsMax);
};

function csv(answer: Answer): AsyncGenerator<Buffer> {
  const { plan } = answer.context;
  if (isWide(plan)) return wide(answer, false);
  return written(csvWriter(answer), answer, warningRows(answer, columnsOf(plan).length));
}

/** Warnings that the metadata of a file lists. */
const FILE_WARNINGS = 100;

/** The metadata of a file: that of the response, and the requested conversion. */
function aboutFile({ metadata, context }: Answer): Record<string, unknown> {
  const { options } = context.plan;
  const { warnings, ...about } = metadata;
  const conversion = PLAN_OPTION_NAMES.filter((name) => optionOf(name).effect !== undefined);
  return {
    revision: metadata.revision,
    metadata: {
      ...about,
      warnings: warnings.slice(0, FILE_WARNINGS),
      warningsCount: warnings.length,
    },
    conversion: Object.fromEntries(conversion.map((name) => [name, options[name]])),
  };
}

const checkColumns = ({ context, records }: Answer): Promise<void> =>
  checkTable(context, contentsOfAll(context, records));

/** A format of typed columns, loaded lazily because only its writer needs its libraries. */
const table = (load: () => Promise<TableSlices>): FormatWriter => ({
  check: checkColumns,
  async *write(answer) {
    const { context, records } = answer;
    await checkColumns(answer);
    const tableSlices = await load();
    yield* tableSlices(context, contentsOfAll(context, records), aboutFile(answer));
  },
});

/** The writer of a format. */
interface FormatWriter {
  /** The bytes in slices. An error midway is thrown, after incomplete bytes. */
  readonly write: (answer: Answer) => AsyncGenerator<Buffer>;
  /** @throws Problem `validation_failed` if the format cannot hold the answer */
  readonly check: (answer: Answer) => Promise<void>;
}

/** A workbook, whose writer is loaded lazily because only it needs its library. */
const workbook: FormatWriter = {
  check: async (answer) => {
    const { checkSheets } = await import('./xlsx/workbook.ts');
    checkSheets(answer);
    await checkIfWide(answer);
  },
  async *write(answer) {
    const { checkSheets, xlsxSlices } = await import('./xlsx/workbook.ts');
    checkSheets(answer);
    yield* xlsxSlices(answer);
  },
};

const holdsAny = async (): Promise<void> => undefined;

/** The writers of the formats, in the order of the table of formats. */
const WRITERS: Readonly<Record<Format, FormatWriter>> = {
  json: { write: (answer) => written(jsonWriter(), answer), check: holdsAny },
  csv: { write: csv, check: checkIfWide },
  ndjson: {
    write: (answer) => written(ndjsonWriter(), answer, warningLines(answer)),
    check: holdsAny,
  },
  rows: {
    write: (answer) =>
      isWide(answer.context.plan) ? wide(answer, true) : written(rowsWriter(answer), answer),
    check: checkIfWide,
  },
  parquet: table(async () => {
    const { parquetSlices } = await import('./parquet.ts');
    return parquetSlices;
  }),
  arrow: table(async () => {
    const { arrowSlices } = await import('./arrow.ts');
    return arrowSlices;
  }),
  xlsx: workbook,
};
