import { dayAfter } from '../dates.ts';
import { datePattern, ISO_DAY } from './date-pattern.ts';
import { Fault, type Field, MomentReader, textOf } from './fields.ts';
import type { PublicationSource } from './schema.ts';

const seconds = (time: string): string => (time.length === 5 ? `${time}:00` : time);

/** Makes publication times, RFC 3339; null stands for the time of the load. */
export class PublicationReader {
  private readonly source: PublicationSource;
  private readonly moments: MomentReader | null;
  private lastDay = '';
  private lastTime = '';

  constructor(source: PublicationSource, is1904: boolean) {
    const { pattern } = source;
    this.source = source;
    this.moments =
      pattern === undefined && source.offset === undefined
        ? null
        : new MomentReader(datePattern(pattern ?? ISO_DAY), is1904, 'invalid_time');
  }

  /** The publication time of a value of a day; `field` is that of the column, if there is one. */
  read(field: Field | undefined, day: string): string | null | Fault {
    const { column, constant } = this.source;
    if (constant !== undefined) return constant;
    return column === undefined ? this.onDay(day) : this.inField(field);
  }

  /** At a time of day, some days after the day of the value. */
  private onDay(day: string): string {
    if (day !== this.lastDay) {
      const { time = '', offset = '', days = 0 } = this.source;
      this.lastDay = day;
      this.lastTime = `${dayAfter(day, days)}T${seconds(time)}${offset}`;
    }
    return this.lastTime;
  }

  private inField(field: Field | undefined): string | null | Fault {
    if (!this.moments) {
      const isDate = typeof field === 'object' && field.type !== 'text';
      if (!isDate) return textOf(field, 'invalid_time') || null;
      return new Fault('invalid_time', 'A date of a workbook needs the offset in the mapping');
    }
    const moment = this.moments.read(field);
    if (moment === '' || moment instanceof Fault) return moment || null;
    const { time, offset = '' } = this.source;
    const hasOwn = moment.time !== null && (time === undefined || moment.time !== '00:00:00');
    const clock = hasOwn ? moment.time : seconds(time ?? '');
    if (clock === null || clock === '') {
      return new Fault('invalid_time', 'The publication has no time of day');
    }
    return `${moment.day}T${clock}${moment.offset ?? offset}`;
  }
}
