import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { type CopyStreamQuery, from } from 'pg-copy-streams';
import { Descriptions } from '../descriptions/descriptions.ts';
import type { FileFormat } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { SourceFile } from '../records/source-file.ts';
import type {
  PointLines,
  PointPlaces,
  PointRecord,
  Quotation,
  SourceRecord,
} from '../records/source-record.ts';
import { CopyRows, type ParsedValue, parsedValue } from './copy-rows.ts';
import { PlainPoints } from './plain-points.ts';
import { SeriesQuotations } from './quotations.ts';
import { SeriesNames, SeriesRanges } from './staged-series.ts';
import { type Bounds, type StagedValue, Validator } from './validate.ts';

/*
 * The staging tables, which hold a file before it is compared: its values (this file), its series
 * (`staged-series.ts`), the values to compare and their states (`compare.ts`). Then values are
 * rejected (`rejections.ts`) and the others written (`change-set.ts`). All statements with these
 * tables are in this folder.
 */

/** Drops the staging tables; a reused connection would keep them. */
export const DROP_STAGING_TABLES =
  'drop table if exists pg_temp.load_value, pg_temp.load_series, pg_temp.load_change';

/**
 * The staging tables are temporary: unlogged, and dropped with the connection. `load_value` holds
 * points and rates in the types of their final tables. A rate is in `mid`, which is null for a day
 * to withdraw. `load_series` holds the prices or currencies, `load_change` the values to compare.
 * Line, series and place identify a value, because a table row may hold several values of a price.
 */
export const STAGING_TABLES = `
${DROP_STAGING_TABLES};
create temp table load_value (
  line bigint not null,
  series_no integer not null,
  date date not null,
  low numeric,
  mid numeric,
  high numeric,
  published_at timestamptz,
  place integer not null default 0,
  written text
);
create temp table load_series (
  series_no integer primary key,
  name text not null,
  key text not null,
  described boolean not null,
  id integer,
  rows bigint not null,
  first_date date,
  last_date date,
  is_ascending boolean not null,
  is_smooth boolean not null,
  has_now boolean not null default false,
  has_past boolean not null default false,
  is_compared boolean not null default false,
  is_refused boolean not null default false,
  rejected_line bigint,
  before numeric[],
  after numeric[]
);
create temp table load_change (
  source text,
  line bigint,
  series_no integer,
  id integer,
  date date not null,
  low numeric,
  mid numeric,
  high numeric,
  published_at timestamptz,
  place integer,
  written text,
  low_before numeric,
  mid_before numeric,
  high_before numeric,
  state text not null,
  corrections integer,
  batch_id integer,
  first_line bigint,
  neighbour numeric[]
)`;

const COLUMNS = ['line', 'series_no', 'date', 'low', 'mid', 'high', 'published_at'];
const PLACED_COLUMNS = [...COLUMNS, 'place', 'written'];

/** The COPY statement; with places if the columns of the file have names of their own. */
const copyStatement = (hasPlaces: boolean): string =>
  `copy pg_temp.load_value (${(hasPlaces ? PLACED_COLUMNS : COLUMNS).join(', ')})
    from stdin (format binary)`;

/** Progress of staging. */
export interface StageProgress {
  /** Values and descriptions read so far. */
  readonly rows: number;
  /** Bytes of the file, or of the part of an archive that is being read. */
  readonly bytes: number;
  readonly bytesTotal: number | null;
}

/** A file that is read, and the rules for its rows. */
interface StagingInput {
  readonly format: FileFormat;
  readonly file: SourceFile;
  readonly bounds: Bounds;
  readonly problems: Problems;
  /** `none` if the file names points to withdraw: only codes and days are read. */
  readonly values: 'all' | 'none';
  /** The greatest factor between neighbouring values of a smooth series, as decimal text. */
  readonly jumpFactor: string | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: StageProgress) => void) | undefined;
}

/** The content of a file besides the values in the staging tables. */
export interface StagedContent
  extends Readonly<
    Pick<Collector, 'series' | 'descriptions' | 'ranges' | 'quotations' | 'statedVintage' | 'rows'>
  > {
  /** Column names of values, by staged place less 1. */
  readonly places: readonly PointPlaces[];
  /** Number of values of the file, including invalid ones. */
  readonly rowsRead: number;
  /** False if reading stopped at a Refusal, which has been reported. */
  readonly isWhole: boolean;
}

/** Validates records and collects them: values as rows of COPY, the rest in memory. */
class Collector {
  readonly copied: CopyRows;
  readonly series = new SeriesNames();
  readonly descriptions: Descriptions;
  readonly ranges: SeriesRanges;
  readonly quotations: SeriesQuotations;
  /** The edition that the file states; null if it states none. */
  statedVintage: string | null = null;
  /** Number of points or rates that are valid by themselves. */
  rows = 0;
  /** Numbered from 1. */
  private readonly places = new Map<PointPlaces, number>();
  private readonly input: StagingInput;
  private readonly hasPlaces: boolean;
  private readonly validator: Validator;
  private plain: PlainPoints | null = null;
  /** Line of a rejected description: values in the same row are rejected too. */
  private rejectedLine = -1;

  constructor(input: StagingInput, hasPlaces: boolean) {
    const { problems, bounds, values, jumpFactor } = input;
    this.copied = new CopyRows(hasPlaces);
    this.descriptions = new Descriptions(problems);
    this.ranges = new SeriesRanges(jumpFactor);
    this.quotations = new SeriesQuotations(problems);
    this.input = input;
    this.hasPlaces = hasPlaces;
    this.validator = new Validator(bounds, problems, values);
  }

  /** Number of values so far, including invalid ones. */
  get rowsRead(): number {
    return this.rows + this.input.problems.rejected;
  }

  content(isWhole: boolean): StagedContent {
    const { series, descriptions, ranges, quotations, statedVintage, rows, rowsRead } = this;
    const places = [...this.places.keys()];
    const collected = { series, descriptions, ranges, quotations, places, statedVintage };
    return { ...collected, rows, rowsRead, isWhole };
  }

  /** Adds the values among some records. */
  takeAll(records: readonly SourceRecord[]): void {
    const { problems } = this.input;
    for (const record of records) {
      problems.record = record;
      this.take(record);
    }
    problems.record = null;
  }

  /** Adds the values of some lines. */
  takeLines({ line: first, bytes, columns, recordsOf }: PointLines): void {
    const { series, input } = this;
    this.plain ??= new PlainPoints(columns, input.bounds, (code, line) =>
      series.numberOf(code, line),
    );
    const { plain } = this;
    let line = first;
    for (let start = 0; start <= bytes.length; start = plain.end + 1) {
      if (plain.parse(bytes, start, line)) this.add(line, plain.series, plain);
      else this.takeAll(recordsOf(line, bytes.subarray(start, plain.end)));
      line += 1;
    }
  }

  private take(record: SourceRecord): void {
    const { series, descriptions } = this;
    const hasCode = record.kind === 'point' || record.kind === 'price';
    if (hasCode && this.validator.codeFails(record)) return;
    if (record.kind === 'point') this.takePoint(record);
    else if (record.kind === 'rate') {
      const value = this.validator.rate(record);
      if (value !== null) this.addNamed(record.line, record.currency, value);
    } else if (record.kind === 'vintage') this.statedVintage = record.date;
    else if (record.kind === 'price') {
      const number = series.numberOf(record.code, record.line);
      if (!descriptions.addPrice(number, record)) this.rejectedLine = record.line;
    } else descriptions.add(record);
  }

  private takePoint(record: PointRecord): void {
    if (record.line === this.rejectedLine) {
      this.input.problems.rejected += 1;
      return;
    }
    const value = this.validator.point(record);
    if (value === null) return;
    if (record.quotation && !this.matchesQuotation(record, record.quotation)) return;
    this.addNamed(record.line, record.code, value);
    const { places, written = null } = record;
    if (this.hasPlaces) this.copied.addPlace(places ? this.placeOf(places) : 0, written);
  }

  /** True if a point has the same quotation as the earlier points of its price. */
  private matchesQuotation({ code, line }: PointRecord, quotation: Quotation): boolean {
    return this.quotations.note(this.series.numberOf(code, line), quotation, line);
  }

  private placeOf(places: PointPlaces): number {
    const place = this.places.get(places) ?? this.places.size + 1;
    this.places.set(places, place);
    return place;
  }

  private addNamed(line: number, name: string, value: StagedValue): void {
    this.add(line, this.series.numberOf(name, line), parsedValue(value));
  }

  private add(line: number, series: number, value: ParsedValue): void {
    this.rows += 1;
    this.ranges.note(series, value);
    this.copied.add(line, series, value);
  }
}

/** Writes with backpressure. */
async function write(copy: CopyStreamQuery, bytes: Buffer, ended: Promise<void>): Promise<void> {
  if (!copy.write(bytes)) await Promise.race([once(copy, 'drain'), ended]);
}

/** Aborts a COPY. */
async function abortCopy(
  copy: CopyStreamQuery,
  ended: Promise<void>,
  error: unknown,
): Promise<void> {
  if (copy.errored) return;
  copy.destroy(error instanceof Error ? error : new Error('the reading failed'));
  await ended.catch(() => {});
}

/**
 * Reads a file into the staging tables and validates every row. Invalid rows are reported and
 * not staged. Memory does not grow with the file. No lock is held, and no transaction is open.
 * @throws errors of the file system and of the database
 */
export async function stageFile(
  connection: PoolClient,
  input: StagingInput,
): Promise<StagedContent> {
  const { format, file, problems, signal, onProgress } = input;
  await connection.query(STAGING_TABLES);
  const hasPlaces = format.mappingSha256 !== undefined && !format.source;
  const collector = new Collector(input, hasPlaces);
  const { copied } = collector;
  const copy = connection.query(from(copyStatement(hasPlaces)));
  // After a server error the connection is no longer in COPY mode, so buffered data must not be
  // written to it.
  copy.on('error', (error) => copy.destroy(error));
  const ended = finished(copy);
  // Awaited below; this handler prevents an unhandled rejection.
  ended.catch(() => {});
  try {
    for await (const batch of format.read({ file, problems })) {
      signal?.throwIfAborted();
      if ('bytes' in batch) collector.takeLines(batch);
      else collector.takeAll(batch);
      if (copied.isFull) await write(copy, copied.take(), ended);
      onProgress?.({ rows: collector.rowsRead, ...file.meter });
    }
    copied.end();
    copy.end(copied.take());
    await ended;
    return collector.content(true);
  } catch (error) {
    await abortCopy(copy, ended, error);
    if (!(error instanceof Refusal)) throw error;
    problems.refuse(error.problem);
    return collector.content(false);
  }
}
