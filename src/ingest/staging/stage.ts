import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { type CopyStreamQuery, from } from 'pg-copy-streams';
import type { Descriptions } from '../descriptions/descriptions.ts';
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
import type { ChangeTarget } from './change-set.ts';
import { CopyRows, type ParsedValue, parsedValue } from './copy-rows.ts';
import { PlainPoints } from './plain-points.ts';
import type { SeriesQuotations } from './quotations.ts';
import type { SeriesNames, SeriesRanges } from './staged-series.ts';
import { type Bounds, type StagedValue, Validator } from './validate.ts';

/**
 * The staging tables are temporary: unlogged, and dropped with the connection. `load_value` holds
 * points and rates in the types of their final tables. A rate is in `mid`, which is null for a day
 * to withdraw. `load_series` holds the prices or currencies, `load_change` the values to compare.
 * Line, series and place identify a value, because a table row may hold several values of a price.
 */
export const STAGING_TABLES = `
drop table if exists pg_temp.load_value, pg_temp.load_series, pg_temp.load_change;
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

/** Drops the staging tables; a reused connection would keep them. */
export const DROP_STAGING_TABLES =
  'drop table pg_temp.load_value, pg_temp.load_series, pg_temp.load_change';

const COLUMNS = ['line', 'series_no', 'date', 'low', 'mid', 'high', 'published_at'];
const PLACED_COLUMNS = [...COLUMNS, 'place', 'written'];

/** The COPY statement; with places if the columns of the file have names of their own. */
const copyStatement = (hasPlaces: boolean): string =>
  `copy pg_temp.load_value (${(hasPlaces ? PLACED_COLUMNS : COLUMNS).join(', ')})
    from stdin (format binary)`;

/** Progress of staging. */
interface StageProgress {
  /** Values and descriptions read so far. */
  readonly rows: number;
  /** Bytes of the file, or of the part of an archive that is being read. */
  readonly bytes: number;
  readonly bytesTotal: number | null;
}

/** A file that is staged: the rules for its rows, and the content of its rows. */
export interface StagedFile {
  readonly format: FileFormat;
  readonly file: SourceFile;
  readonly bounds: Bounds;
  readonly problems: Problems;
  /** True if the file names values to withdraw. */
  readonly withdraws: boolean;
  /** True if values may differ from their neighbours by any factor. */
  readonly mayJump: boolean;
  readonly target: ChangeTarget;
  readonly series: SeriesNames;
  readonly descriptions: Descriptions;
  readonly ranges: SeriesRanges;
  readonly quotations: SeriesQuotations;
  /** Column names of values, by staged place less 1. */
  readonly places: PointPlaces[];
  /** The edition that the file states, otherwise that of the request. */
  vintage: string | null;
  /** Number of points or rates that are valid by themselves. */
  rows: number;
  /** Number of values of the file, including invalid ones. */
  rowsRead: number;
}

/** Validates records and collects them: values as rows of COPY, the rest in the staged file. */
class Collector {
  readonly rows: CopyRows;
  private readonly load: StagedFile;
  private readonly hasPlaces: boolean;
  private readonly validator: Validator;
  private plain: PlainPoints | null = null;
  /** Numbered from 1. */
  private readonly places = new Map<PointPlaces, number>();
  /** Line of a rejected description: values in the same row are rejected too. */
  private rejectedLine = -1;

  constructor(load: StagedFile, hasPlaces: boolean) {
    this.load = load;
    this.hasPlaces = hasPlaces;
    this.rows = new CopyRows(hasPlaces);
    this.validator = new Validator(load.bounds, load.problems, load.withdraws);
  }

  /** Adds the values among some records. */
  takeAll(records: readonly SourceRecord[]): void {
    const { problems } = this.load;
    for (const record of records) {
      problems.record = record;
      this.take(record);
    }
    problems.record = null;
  }

  /** Adds the values of some lines. */
  takeLines({ line: first, bytes, columns, recordsOf }: PointLines): void {
    const { bounds, series } = this.load;
    this.plain ??= new PlainPoints(columns, bounds, (code, line) => series.numberOf(code, line));
    const { plain } = this;
    let line = first;
    for (let start = 0; start <= bytes.length; start = plain.end + 1) {
      if (plain.parse(bytes, start, line)) this.add(line, plain.series, plain);
      else this.takeAll(recordsOf(line, bytes.subarray(start, plain.end)));
      line += 1;
    }
  }

  private take(record: SourceRecord): void {
    const { series, descriptions } = this.load;
    const hasCode = record.kind === 'point' || record.kind === 'price';
    if (hasCode && this.validator.codeFails(record)) return;
    if (record.kind === 'point') this.takePoint(record);
    else if (record.kind === 'rate') {
      const value = this.validator.rate(record);
      if (value !== null) this.addNamed(record.line, record.currency, value);
    } else if (record.kind === 'vintage') this.load.vintage = record.date;
    else if (record.kind === 'price') {
      const number = series.numberOf(record.code, record.line);
      if (!descriptions.addPrice(number, record)) this.rejectedLine = record.line;
    } else descriptions.add(record);
  }

  private takePoint(record: PointRecord): void {
    if (record.line === this.rejectedLine) {
      this.load.problems.rejected += 1;
      return;
    }
    const value = this.validator.point(record);
    if (value === null) return;
    if (record.quotation && !this.matchesQuotation(record, record.quotation)) return;
    this.addNamed(record.line, record.code, value);
    const { places, written = null } = record;
    if (this.hasPlaces) this.rows.addPlace(places ? this.placeOf(places) : 0, written);
  }

  /** True if a point has the same quotation as the earlier points of its price. */
  private matchesQuotation({ code, line }: PointRecord, quotation: Quotation): boolean {
    const { quotations: known, series } = this.load;
    return known.note(series.numberOf(code, line), quotation, line);
  }

  private placeOf(places: PointPlaces): number {
    const known = this.places.get(places);
    if (known !== undefined) return known;
    const place = this.load.places.push(places);
    this.places.set(places, place);
    return place;
  }

  private addNamed(line: number, name: string, value: StagedValue): void {
    this.add(line, this.load.series.numberOf(name, line), parsedValue(value));
  }

  private add(line: number, series: number, value: ParsedValue): void {
    const { load } = this;
    load.rows += 1;
    load.ranges.note(series, value);
    this.rows.add(line, series, value);
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
 * @returns false if reading stopped at a Refusal, which has been reported
 * @throws errors of the file system and of the database
 */
export async function stage(
  connection: PoolClient,
  load: StagedFile,
  signal: AbortSignal | undefined,
  onProgress: ((progress: StageProgress) => void) | undefined,
): Promise<boolean> {
  const { format, file, problems } = load;
  await connection.query(STAGING_TABLES);
  const hasPlaces = format.mappingSha256 !== undefined && !format.source;
  const collector = new Collector(load, hasPlaces);
  const copy = connection.query(from(copyStatement(hasPlaces)));
  // After a server error the connection is no longer in COPY mode, so buffered data must not be
  // written to it.
  copy.on('error', (error) => copy.destroy(error));
  const ended = finished(copy);
  // Awaited below; this handler prevents an unhandled rejection.
  ended.catch(() => {});
  let isWhole = true;
  try {
    for await (const batch of format.read({ file, problems })) {
      signal?.throwIfAborted();
      if ('bytes' in batch) collector.takeLines(batch);
      else collector.takeAll(batch);
      if (collector.rows.isFull) await write(copy, collector.rows.take(), ended);
      const rows = load.rows + problems.rejected;
      onProgress?.({ rows, ...file.meter });
    }
    collector.rows.end();
    copy.end(collector.rows.take());
    await ended;
  } catch (error) {
    await abortCopy(copy, ended, error);
    if (!(error instanceof Refusal)) throw error;
    problems.refuse(error.problem);
    isWhole = false;
  }
  load.rowsRead = load.rows + problems.rejected;
  return isWhole;
}
