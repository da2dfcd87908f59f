import type { StagedValue } from './validate.ts';

/** Far more than two roundings of doubles can amount to. */
const MARGIN = 1e-9;

/** A real day, YYYY-MM-DD, as the number YYYYMMDD: days keep their order. */
const dayNumber = (date: string): number =>
  Number(date.slice(0, 4)) * 10_000 + Number(date.slice(5, 7)) * 100 + Number(date.slice(8));

const dayText = (day: number): string =>
  String(day).replace(/^(\d+)(\d\d)(\d\d)$/, (_, year, month, date) =>
    [String(year).padStart(4, '0'), month, date].join('-'),
  );

/**
 * What the values of each price or currency span, noted while they are read, so that the database
 * has to look closely only where there may be something to see. Prices by their number in the
 * file; nothing of the file is held but numbers.
 */
export class Ranges {
  private readonly rows: number[] = [];
  private readonly first: number[] = [];
  private readonly last: number[] = [];
  private readonly newest: number[] = [];
  private readonly low: number[] = [];
  private readonly high: number[] = [];
  private readonly ascending: boolean[] = [];
  private readonly smooth: boolean[] = [];
  private readonly factor: number;
  private latest = -1;
  private grouped = true;

  /** @param jumpFactor decimal text, greater than 1 */
  constructor(jumpFactor: string) {
    this.factor = Number(jumpFactor) * (1 - MARGIN);
  }

  /** Notes the next value of a price or currency. */
  note(number: number, { date, low, mid, high }: StagedValue): void {
    const day = dayNumber(date);
    const lowest = Number(low ?? mid);
    const highest = Number(high ?? mid);
    const rows = this.rows[number];
    if (number !== this.latest) {
      if (rows !== undefined) this.grouped = false;
      this.latest = number;
    }
    if (rows === undefined) {
      this.rows[number] = 1;
      this.first[number] = day;
      this.last[number] = day;
      this.ascending[number] = true;
      this.smooth[number] = true;
    } else {
      this.rows[number] = rows + 1;
      if (day <= (this.newest[number] as number)) this.ascending[number] = false;
      if (day < (this.first[number] as number)) this.first[number] = day;
      if (day > (this.last[number] as number)) this.last[number] = day;
      const least = Math.min(lowest, this.low[number] as number);
      const most = Math.max(highest, this.high[number] as number);
      // What is not surely smooth is compared exactly later, by the database.
      if (!(least > 0 && most <= least * this.factor)) this.smooth[number] = false;
    }
    this.newest[number] = day;
    this.low[number] = lowest;
    this.high[number] = highest;
  }

  /** Whether the values come price by price, each in the order of its dates. */
  get isInOrder(): boolean {
    return this.grouped && this.ascending.every(Boolean);
  }

  /** By number: how many values there are, on which days, and what can be said of them. */
  columns(length: number): {
    rows: number[];
    first: (string | null)[];
    last: (string | null)[];
    ascending: boolean[];
    smooth: boolean[];
  } {
    const all = Array.from({ length }, (_, number) => number);
    const text = (day: number | undefined): string | null =>
      day === undefined ? null : dayText(day);
    return {
      rows: all.map((number) => this.rows[number] ?? 0),
      first: all.map((number) => text(this.first[number])),
      last: all.map((number) => text(this.last[number])),
      ascending: all.map((number) => this.ascending[number] ?? true),
      smooth: all.map((number) => this.smooth[number] ?? true),
    };
  }
}
