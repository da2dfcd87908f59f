import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { type CopyStreamQuery, from } from 'pg-copy-streams';
import { Descriptions } from './descriptions.ts';
import { type Problems, Refusal } from './problems.ts';
import { Ranges } from './ranges.ts';
import type { PointRecord, SourceRecord, StatedTerms } from './records.ts';
import { Subjects } from './subjects.ts';
import { TermsOfPrices } from './terms.ts';
import { type Bounds, type StagedValue, Validator } from './validate.ts';

/**
 * Temporary tables are unlogged and go with the connection. `load_value` holds points and rates
 * alike (a rate in `mid`); its numbers are typed here once, so that no later step sees text.
 * `load_subject` has the prices or currencies, `load_change` the values that have to be compared.
 */
const TABLES = `
create temp table load_value (
  line bigint not null,
  subject integer not null,
  date date not null,
  low numeric,
  mid numeric not null,
  high numeric,
  published_at timestamptz
);
create temp table load_subject (
  subject integer primary key,
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
  is_careful boolean not null default false,
  rejected_line bigint,
  before numeric[],
  after numeric[]
);
create temp table load_change (
  line bigint,
  subject integer not null,
  id integer,
  date date not null,
  low numeric,
  mid numeric,
  high numeric,
  published_at timestamptz,
  low_before numeric,
  mid_before numeric,
  high_before numeric,
  state text not null,
  corrections integer,
  first_line bigint,
  beside numeric[]
)`;

/** Takes the staging tables away, so that the connection can be used again. */
export const UNSTAGE =
  'drop table if exists pg_temp.load_value, pg_temp.load_subject, pg_temp.load_change';

const COPY = 'copy pg_temp.load_value from stdin';

/** A file in the staging tables. */
export interface Staged {
  /** Points or rates that are right by themselves. */
  readonly rows: number;
  /** Values of the file, also those that are not right. */
  readonly rowsRead: number;
  /** False when the file makes no sense from some place on; the problem has been noted. */
  readonly isWhole: boolean;
  readonly subjects: Subjects;
  readonly descriptions: Descriptions;
  readonly ranges: Ranges;
  readonly terms: TermsOfPrices;
  /** The edition that the file states. */
  readonly vintage: string | null;
}

export interface StageOptions {
  readonly bounds: Bounds;
  readonly problems: Problems;
  /** How much two neighbouring values may differ, as decimal text. */
  readonly jumpFactor: string;
  onProgress(rows: number): void;
  readonly signal: AbortSignal | undefined;
}

/** One line of COPY in text format. Nothing in it needs an escape: all of it was validated. */
const copyLine = (line: number, subject: number, value: StagedValue): string => {
  const { date, low, mid, high, publishedAt } = value;
  const range = `${low ?? '\\N'}\t${mid}\t${high ?? '\\N'}`;
  return `${line}\t${subject}\t${date}\t${range}\t${publishedAt ?? '\\N'}\n`;
};

/** Takes records one after another and keeps what is not a value. */
class Collector {
  readonly subjects = new Subjects();
  readonly descriptions: Descriptions;
  readonly ranges: Ranges;
  readonly terms: TermsOfPrices;
  vintage: string | null = null;
  rows = 0;
  private readonly validator: Validator;
  private readonly problems: Problems;
  /** Of a description that was rejected: the values beside it are not taken either. */
  private rejectedLine = 0;

  constructor({ bounds, problems, jumpFactor }: StageOptions) {
    this.problems = problems;
    this.terms = new TermsOfPrices(problems);
    this.validator = new Validator(bounds, problems);
    this.descriptions = new Descriptions(problems);
    this.ranges = new Ranges(jumpFactor);
  }

  /** The lines of COPY for the values among some records. */
  takeAll(records: readonly SourceRecord[]): string {
    let text = '';
    for (const record of records) {
      this.problems.record = record;
      text += this.take(record);
    }
    this.problems.record = null;
    return text;
  }

  /** The line of COPY for a value, or nothing. */
  private take(record: SourceRecord): string {
    const hasCode = record.kind === 'point' || record.kind === 'price';
    if (hasCode && this.validator.codeFails(record)) return '';
    if (record.kind === 'point') {
      if (record.line === this.rejectedLine && this.problems.latest) {
        this.problems.rejectFor(this.problems.latest);
        return '';
      }
      const value = this.validator.point(record);
      if (value !== null && record.terms && !this.hasTerms(record, record.terms)) return '';
      return value === null ? '' : this.copied(record.line, record.code, value);
    }
    if (record.kind === 'rate') {
      const value = this.validator.rate(record);
      return value === null ? '' : this.copied(record.line, record.currency, value);
    }
    if (record.kind === 'vintage') this.vintage = record.date;
    else if (record.kind === 'price') {
      const number = this.subjects.numberOf(record.code, record.line);
      if (!this.descriptions.addPrice(number, record)) this.rejectedLine = record.line;
    } else this.descriptions.add(record);
    return '';
  }

  /** Whether a point is in the same terms as those before it of its price. */
  private hasTerms({ code, line }: PointRecord, terms: StatedTerms): boolean {
    return this.terms.note(this.subjects.numberOf(code, line), terms, line);
  }

  private copied(line: number, name: string, value: StagedValue): string {
    this.rows += 1;
    const number = this.subjects.numberOf(name, line);
    this.ranges.note(number, value);
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
 * Reads records into temporary tables of the connection, validating every row; problems are noted
 * and the rows that have them are left out. Memory does not grow with the file. Nothing is locked
 * and no transaction is open meanwhile.
 * @throws errors of the file system and of the database
 */
export async function stage(
  connection: PoolClient,
  batches: AsyncIterable<readonly SourceRecord[]>,
  options: StageOptions,
): Promise<Staged> {
  const { problems, signal } = options;
  await connection.query(TABLES);
  const collector = new Collector(options);
  const copy = connection.query(from(COPY));
  const ended = finished(copy);
  // Awaited below; this keeps an early failure from counting as unhandled.
  ended.catch(() => {});
  let isWhole = true;
  try {
    for await (const batch of batches) {
      signal?.throwIfAborted();
      await write(copy, collector.takeAll(batch), ended);
      options.onProgress(collector.rows + problems.rejected);
    }
    copy.end();
    await ended;
  } catch (error) {
    await abandon(copy, ended, error);
    if (!(error instanceof Refusal)) throw error;
    problems.refuse(error.problem);
    isWhole = false;
  }
  const { rows, subjects, descriptions, ranges, terms, vintage } = collector;
  const rowsRead = rows + problems.rejected;
  return { rows, rowsRead, isWhole, subjects, descriptions, ranges, terms, vintage };
}
