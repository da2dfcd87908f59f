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
 * Temporary tables are unlogged and go with the connection. `load_value` holds points and rates
 * alike (a rate in `mid`); its numbers are typed here once, so that no later step sees text.
 * `load_series` has the prices or currencies, `load_change` the values that have to be compared.
 * `load_value` has no mid for a day whose value is to be withdrawn.
 * A value is identified by line, series and place: a table row may hold several values of a price.
 */
export const TABLES = `
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

/** Takes the staging tables away at once: a connection that is used again would keep them. */
export const UNSTAGE = 'drop table pg_temp.load_value, pg_temp.load_series, pg_temp.load_change';

const COLUMNS = ['line', 'series_no', 'date', 'low', 'mid', 'high', 'published_at'];
const PLACED_COLUMNS = [...COLUMNS, 'place', 'written'];

/** The statement that takes the lines; with places for a file whose columns have own names. */
const copyStatement = (hasPlaces: boolean): string =>
  `copy pg_temp.load_value (${(hasPlaces ? PLACED_COLUMNS : COLUMNS).join(', ')}) from stdin`;

/** A text as COPY's text format writes it. */
const copyEscaped = (text: string): string =>
  text.replace(/[\\\t\n\r]/g, (character) => `\\${character}`);

/** One line of COPY in text format. Nothing in it needs an escape: all of it was validated. */
const copyLine = (line: number, series: number, value: StagedValue): string => {
  const { date, low, mid, high, publishedAt } = value;
  const range = `${low ?? '\\N'}\t${mid ?? '\\N'}\t${high ?? '\\N'}`;
  return `${line}\t${series}\t${date}\t${range}\t${publishedAt ?? '\\N'}\n`;
};

/** The same with the place, and the values as they were written: any text. */
const placedLine = (plain: string, place: number, written: string | null): string => {
  const text = written === null ? '\\N' : copyEscaped(written);
  return `${plain.slice(0, -1)}\t${place}\t${text}\n`;
};

/** How much of a file has been staged. */
interface StageProgress {
  /** Values and descriptions that were read. */
  readonly rows: number;
  /** Bytes of the file, or of the part of an archive that is being read. */
  readonly bytes: number;
  readonly bytesTotal: number | null;
}

/** A file that is staged: the rules for its rows, and what its rows state. */
export interface StagedFile {
  readonly format: FileFormat;
  readonly file: SourceFile;
  readonly bounds: Bounds;
  readonly problems: Problems;
  /** Whether the file names values to withdraw. */
  readonly withdraws: boolean;
  /** Whether values may differ from their neighbours by any factor. */
  readonly mayJump: boolean;
  readonly target: ChangeTarget;
  readonly series: SeriesNames;
  readonly descriptions: Descriptions;
  readonly ranges: SeriesRanges;
  readonly terms: SeriesQuotations;
  /** Names of the columns of values, by the staged place less 1. */
  readonly places: PointPlaces[];
  /** The edition that the file states, else the one that the request gives. */
  vintage: string | null;
  /** Points or rates that are valid by themselves. */
  rows: number;
  /** Values of the file, including invalid ones. */
  rowsRead: number;
}

/** Takes records one after another; what is not a value goes into the load. */
class Collector {
  private readonly load: StagedFile;
  private readonly validator: Validator;
  /** Numbered from 1. */
  private readonly places = new Map<PointPlaces, number>();
  /** Of a description that was rejected: the values beside it are not taken either. */
  private rejectedLine = -1;

  constructor(load: StagedFile) {
    this.load = load;
    this.validator = new Validator(load.bounds, load.problems, load.withdraws);
  }

  /** The lines of COPY for the values among some records. */
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

  /** The line of COPY for a value, or nothing. */
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
      if (value !== null && record.terms && !this.hasTerms(record, record.terms)) return '';
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

  /** Whether a point is in the same terms as those before it of its price. */
  private hasTerms({ code, line }: PointRecord, terms: Quotation): boolean {
    const { terms: known, series } = this.load;
    return known.note(series.numberOf(code, line), terms, line);
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

/** Writes with backpressure: when the server is behind, the file waits. */
async function write(copy: CopyStreamQuery, text: string, ended: Promise<void>): Promise<void> {
  if (text !== '' && !copy.write(text)) await Promise.race([once(copy, 'drain'), ended]);
}

/** Ends a COPY without its rows. */
async function abandon(copy: CopyStreamQuery, ended: Promise<void>, error: unknown): Promise<void> {
  if (copy.errored) return;
  copy.destroy(error instanceof Error ? error : new Error('the reading failed'));
  await ended.catch(() => {});
}

/**
 * Reads the file of a load into temporary tables of the connection, validating every row; problems
 * are noted and the rows that have them are left out. Memory does not grow with the file. Nothing
 * is locked and no transaction is open meanwhile.
 * @returns false when the file makes no sense from some place on; the problem has been noted
 * @throws errors of the file system and of the database
 */
export async function stage(
  connection: PoolClient,
  load: StagedFile,
  signal: AbortSignal | undefined,
  onProgress: ((progress: StageProgress) => void) | undefined,
): Promise<boolean> {
  const { format, file, problems } = load;
  await connection.query(TABLES);
  const collector = new Collector(load);
  const hasPlaces = format.mappingSha256 !== undefined && !format.source;
  const copy = connection.query(from(copyStatement(hasPlaces)));
  // What it still holds when the server refuses would be written to a connection that it has left.
  copy.on('error', (error) => copy.destroy(error));
  const ended = finished(copy);
  // Awaited below; this keeps an early failure from counting as unhandled.
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
    await abandon(copy, ended, error);
    if (!(error instanceof Refusal)) throw error;
    problems.refuse(error.problem);
    isWhole = false;
  }
  load.rowsRead = load.rows + problems.rejected;
  return isWhole;
}
