import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { type CopyStreamQuery, from } from 'pg-copy-streams';
import type { PointPlaces, PointRecord, SourceRecord, StatedTerms } from '../load/records.ts';
import type { Load } from '../load/request.ts';
import { type StagedValue, Validator } from '../load/validate.ts';
import { Refusal } from '../rejects/problems.ts';
import { copyLine, copyStatement, placedLine, TABLES } from './stage-tables.ts';

/** Takes records one after another; what is not a value goes into the load. */
class Collector {
  private readonly load: Load;
  private readonly validator: Validator;
  /** Numbered from 1. */
  private readonly places = new Map<PointPlaces, number>();
  /** Of a description that was rejected: the values beside it are not taken either. */
  private rejectedLine = -1;

  constructor(load: Load) {
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
    const { problems, subjects, descriptions } = this.load;
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
      const number = subjects.numberOf(record.code, record.line);
      if (!descriptions.addPrice(number, record)) this.rejectedLine = record.line;
    } else descriptions.add(record);
    return '';
  }

  /** Whether a point is in the same terms as those before it of its price. */
  private hasTerms({ code, line }: PointRecord, terms: StatedTerms): boolean {
    const { terms: known, subjects } = this.load;
    return known.note(subjects.numberOf(code, line), terms, line);
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
    const number = load.subjects.numberOf(name, line);
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
export async function stage(connection: PoolClient, load: Load): Promise<boolean> {
  const { format, file, problems, request } = load;
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
      request.signal?.throwIfAborted();
      await write(copy, collector.takeAll(batch), ended);
      const rows = load.rows + problems.rejected;
      request.onProgress?.({ step: 'reading', rows, ...file.meter });
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
