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
  PointPlaces,
  PointRecord,
  Quotation,
  SourceRecord,
} from '../records/source-record.ts';
import type { ChangeTarget } from './change-set.ts';
import type { SeriesQuotations } from './quotations.ts';
import type { SeriesNames, SeriesRanges } from './series.ts';
import { type Bounds, type StagedValue, Validator } from './validate.ts';

/**
 * The staging tables are temporary: unlogged, and dropped with the connection. `load_value` holds
 * points and rates (a rate in `mid`), typed here once; `mid` is null for a day to withdraw.
 * `load_series` holds the prices or currencies, `load_change` the values to compare. A value is
 * identified by line, series and place: a table row may hold several values of a price.
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
  `copy pg_temp.load_value (${(hasPlaces ? PLACED_COLUMNS : COLUMNS).join(', ')}) from stdin`;

/** Escapes a text for COPY's text format. */
const copyEscaped = (text: string): string =>
  text.replace(/[\\\t\n\r]/g, (character) => `\\${character}`);

/** One COPY line in text format. Validated values need no escape. */
const copyLine = (line: number, series: number, value: StagedValue): string => {
  const { date, low, mid, high, publishedAt } = value;
  const range = `${low ?? '\\N'}\t${mid ?? '\\N'}\t${high ?? '\\N'}`;
  return `${line}\t${series}\t${date}\t${range}\t${publishedAt ?? '\\N'}\n`;
};

/** The same with the place, and the values as written, which may be any text. */
const placedLine = (plain: string, place: number, written: string | null): string => {
  const text = written === null ? '\\N' : copyEscaped(written);
  return `${plain.slice(0, -1)}\t${place}\t${text}\n`;
};

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

/** Validates records and collects them: values as COPY lines, the rest in the staged file. */
class Collector {
  private readonly load: StagedFile;
  private readonly validator: Validator;
  /** Numbered from 1. */
  private readonly places = new Map<PointPlaces, number>();
  /** Line of a rejected description: values in the same row are rejected too. */
  private rejectedLine = -1;

  constructor(load: StagedFile) {
    this.load = load;
    this.validator = new Validator(load.bounds, load.problems, load.withdraws);
  }

  /** The COPY lines of the values among some records. */
  takeAll(records: readonly SourceRecord[]): string {
    const { problems } = this.load;
    let text = '';
    for (const record of records) {
      problems.record = record;
      text += this.take(record);
    }
    problems.record = null;
    return text;
  }

  /** The COPY line of a value; empty for other records and rejected values. */
  private take(record: SourceRecord): string {
    const { problems, series, descriptions } = this.load;
    const hasCode = record.kind === 'point' || record.kind === 'price';
    if (hasCode && this.validator.codeFails(record)) return '';
    if (record.kind === 'point') {
      if (record.line === this.rejectedLine) {
        problems.rejected += 1;
        return '';
      }
      const value = this.validator.point(record);
      if (value !== null && record.quotation && !this.matchesQuotation(record, record.quotation))
        return '';
      if (value === null) return '';
      const copied = this.copied(record.line, record.code, value);
      const { places, written = null } = record;
      return places ? placedLine(copied, this.placeOf(places), written) : copied;
    }
    if (record.kind === 'rate') {
      const value = this.validator.rate(record);
      return value === null ? '' : this.copied(record.line, record.currency, value);
    }
    if (record.kind === 'vintage') this.load.vintage = record.date;
    else if (record.kind === 'price') {
      const number = series.numberOf(record.code, record.line);
      if (!descriptions.addPrice(number, record)) this.rejectedLine = record.line;
    } else descriptions.add(record);
    return '';
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

  private copied(line: number, name: string, value: StagedValue): string {
    const { load } = this;
    load.rows += 1;
    const number = load.series.numberOf(name, line);
    load.ranges.note(number, value);
    return copyLine(line, number, value);
  }
}

/** Writes with backpressure. */
async function write(copy: CopyStreamQuery, text: string, ended: Promise<void>): Promise<void> {
  if (text !== '' && !copy.write(text)) await Promise.race([once(copy, 'drain'), ended]);
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
 * Reads a file into the staging tables and validates every row. Invalid rows are reported and left
 * out. Memory does not grow with the file. No lock is held and no transaction is open meanwhile.
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
  const collector = new Collector(load);
  const hasPlaces = format.mappingSha256 !== undefined && !format.source;
  const copy = connection.query(from(copyStatement(hasPlaces)));
  // After an error of the server, buffered data must not be written to a connection that has left
  // COPY.
  copy.on('error', (error) => copy.destroy(error));
  const ended = finished(copy);
  // Awaited below; this handler prevents an unhandled rejection.
  ended.catch(() => {});
  let isWhole = true;
  try {
    for await (const batch of format.read({ file, problems })) {
      signal?.throwIfAborted();
      await write(copy, collector.takeAll(batch), ended);
      const rows = load.rows + problems.rejected;
      onProgress?.({ rows, ...file.meter });
    }
    copy.end();
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
