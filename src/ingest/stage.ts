import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { type CopyStreamQuery, from } from 'pg-copy-streams';
import { Descriptions } from './descriptions.ts';
import { type Problems, Refusal } from './problems.ts';
import type { SourceRecord } from './records.ts';
import { Subjects } from './subjects.ts';
import { type Bounds, type StagedValue, Validator } from './validate.ts';

/**
 * Temporary tables are unlogged and go with the connection. `load_value` holds points and rates
 * alike (a rate in `mid`); its numbers are typed here once, so that no later step sees text.
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
  id integer
);
create temp table load_differing (
  line bigint not null,
  subject integer not null,
  id integer not null,
  date date not null,
  low numeric,
  mid numeric not null,
  high numeric,
  published_at timestamptz,
  low_before numeric,
  mid_before numeric not null,
  high_before numeric,
  outdated boolean not null
)`;

/** Takes the staging tables away, so that the connection can be used again. */
export const UNSTAGE =
  'drop table if exists pg_temp.load_value, pg_temp.load_subject, pg_temp.load_differing';

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
  /** The edition that the file states. */
  readonly vintage: string | null;
}

export interface StageOptions {
  readonly bounds: Bounds;
  readonly problems: Problems;
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
  vintage: string | null = null;
  rows = 0;
  private readonly validator: Validator;

  constructor({ bounds, problems }: StageOptions) {
    this.validator = new Validator(bounds, problems);
    this.descriptions = new Descriptions(problems);
  }

  /** The line of COPY for a value, or nothing. */
  take(record: SourceRecord): string {
    const hasCode = record.kind === 'point' || record.kind === 'price';
    if (hasCode && this.validator.codeFails(record)) return '';
    if (record.kind === 'point') {
      const value = this.validator.point(record);
      return value === null ? '' : this.copied(record.line, record.code, value);
    }
    if (record.kind === 'rate') {
      const value = this.validator.rate(record);
      return value === null ? '' : this.copied(record.line, record.currency, value);
    }
    if (record.kind === 'vintage') this.vintage = record.date;
    else if (record.kind === 'price') {
      this.descriptions.addPrice(this.subjects.numberOf(record.code, record.line), record);
    } else this.descriptions.add(record);
    return '';
  }

  private copied(line: number, name: string, value: StagedValue): string {
    this.rows += 1;
    return copyLine(line, this.subjects.numberOf(name, line), value);
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
      let text = '';
      for (const record of batch) text += collector.take(record);
      await write(copy, text, ended);
      options.onProgress(collector.rows + problems.rejected);
    }
    copy.end();
    await ended;
  } catch (error) {
    await abandon(copy, ended, error);
    if (!(error instanceof Refusal)) throw error;
    problems.note(error.problem);
    isWhole = false;
  }
  const { rows, subjects, descriptions, vintage } = collector;
  return { rows, rowsRead: rows + problems.rejected, isWhole, subjects, descriptions, vintage };
}
