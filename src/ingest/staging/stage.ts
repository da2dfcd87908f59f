import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { type CopyStreamQuery, from } from 'pg-copy-streams';
import { Descriptions } from '../descriptions.ts';
import { Ranges } from '../ranges.ts';
import type { PointPlaces, PointRecord, SourceRecord, StatedTerms } from '../records.ts';
import { type Problems, Refusal } from '../rejects/problems.ts';
import { Subjects } from '../subjects.ts';
import { TermsOfPrices } from '../terms.ts';
import { type Bounds, type StagedValue, Validator } from '../validate.ts';
import { copyLine, copyStatement, placedLine, TABLES } from './stage-tables.ts';

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
  /** Where values stand, by their place less 1. */
  readonly places: readonly PointPlaces[];
  /** The edition that the file states. */
  readonly vintage: string | null;
}

interface StageOptions {
  readonly bounds: Bounds;
  readonly problems: Problems;
  /** How much two neighbouring values may differ, as decimal text. */
  readonly jumpFactor: string;
  /** Whether the columns of the file have names of their own. */
  readonly hasPlaces: boolean;
  onProgress(rows: number): void;
  readonly signal: AbortSignal | undefined;
}

/** Takes records one after another and keeps what is not a value. */
class Collector {
  readonly subjects = new Subjects();
  readonly descriptions: Descriptions;
  readonly ranges: Ranges;
  readonly terms: TermsOfPrices;
  /** Numbered from 1. */
  readonly places = new Map<PointPlaces, number>();
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
      if (value === null) return '';
      const copied = this.copied(record.line, record.code, value);
      const { places, written = null } = record;
      return places ? placedLine(copied, this.placeOf(places), written) : copied;
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

  private placeOf(places: PointPlaces): number {
    const place = this.places.get(places) ?? this.places.size + 1;
    this.places.set(places, place);
    return place;
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
  const copy = connection.query(from(copyStatement(options.hasPlaces)));
  // What it still holds when the server refuses would be written to a connection that it has left.
  copy.on('error', (error) => copy.destroy(error));
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
  const places = [...collector.places.keys()];
  return { rows, rowsRead, isWhole, subjects, descriptions, ranges, terms, places, vintage };
}
