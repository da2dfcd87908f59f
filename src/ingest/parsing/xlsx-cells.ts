import { Refusal } from '../records/load-error.ts';
import type { SourceRow } from './rows.ts';
import { attributeOf, type Tag, type XmlListener } from './xml.ts';

/** What a number in a cell is, by the way in which the spreadsheet program shows it. */
export type NumberKind = 'number' | 'percent' | 'date' | 'time' | 'date-time';

/** Formats that no workbook writes out (ECMA-376 part 1, 18.8.30); the others are numbers. */
const BUILT_IN: readonly (readonly [from: number, to: number, NumberKind])[] = [
  [9, 10, 'percent'],
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date-time'],
  // East Asian formats: what they show depends on the language, and is always a date or a time.
  [27, 31, 'date'],
  [32, 33, 'time'],
  [34, 36, 'date'],
  [45, 47, 'time'],
  [50, 58, 'date'],
];

/** The kind of a format that a workbook refers to by a number of its own. */
export const builtInKind = (id: number): NumberKind =>
  BUILT_IN.find(([from, to]) => id >= from && id <= to)?.[2] ?? 'number';

/** Hours, minutes or seconds that count on beyond a day or an hour: `[h]:mm`. */
const ELAPSED = /\[(?:h+|m+|s+)\]/i;
/** What is shown as it stands or not at all: quoted and escaped text, fillers, colours, locales. */
const LITERAL = /"[^"]*"?|[\\_*].|\[[^\]]*\]?|AM\/PM|A\/P/gi;

/** The kind of a format that is written out: `dd/mm/yyyy` is a date, `0.0%` a percentage. */
export function kindOfFormat(code: string): NumberKind {
  // What follows a semicolon is for negative numbers, zero and text.
  const first = code.replace(/"[^"]*"?|\\./g, ' ').split(';')[0] ?? '';
  const letters = first.replace(LITERAL, ' ').toLowerCase();
  if (letters.includes('general')) return 'number';
  const hasTime = ELAPSED.test(first) || /[hs]/.test(letters);
  // An m beside hours or seconds means minutes, alone it is a month.
  const hasDate = /[yd]/.test(letters) || (!hasTime && letters.includes('m'));
  if (hasDate) return hasTime ? 'date-time' : 'date';
  if (hasTime) return 'time';
  return letters.includes('%') ? 'percent' : 'number';
}

/** A moment of a workbook: it knows neither time zones nor leap seconds. */
interface SerialMoment {
  /** YYYY-MM-DD. */
  readonly day: string;
  /** `HH:MM:SS`, with milliseconds where there are some; midnight for a day alone. */
  readonly time: string;
}

const DAY_MS = 86_400_000;
/** The last day of the year 9999, in either system. */
const LAST = { 1900: 2_958_465, 1904: 2_957_003 } as const;
/**
 * The system of 1900 counts a 29 February 1900, which there never was (a fault of Lotus 1-2-3
 * that Excel took over to read its files): days before it are counted from another start.
 */
const FALSE_LEAP_DAY = 60;
const STARTS = {
  1904: Date.UTC(1904, 0, 1),
  beforeLeapDay: Date.UTC(1899, 11, 31),
  afterLeapDay: Date.UTC(1899, 11, 30),
};

/**
 * The moment that a date cell holds: days since the start of 1900, or of 1904 in workbooks that
 * say so, with the time of day as a fraction, to the millisecond. A text instead of a moment
 * says why there is none.
 */
export function momentOfSerial(serial: number, is1904: boolean): SerialMoment | string {
  const system = is1904 ? 1904 : 1900;
  const least = is1904 ? 0 : 1;
  if (!(serial >= least && serial < LAST[system] + 1)) {
    return `is no day of the ${system} date system`;
  }
  const whole = Math.floor(serial);
  // Rounding may reach midnight, as it does on the screen.
  const inDay = Math.round((serial - whole) * DAY_MS);
  const day = whole + Math.floor(inDay / DAY_MS);
  if (!is1904 && day === FALSE_LEAP_DAY) {
    return 'is 29 February 1900, a day that there never was';
  }
  if (day > LAST[system]) return `is no day of the ${system} date system`;
  const start = day < FALSE_LEAP_DAY ? STARTS.beforeLeapDay : STARTS.afterLeapDay;
  const moment = new Date((is1904 ? STARTS[1904] : start) + day * DAY_MS + (inDay % DAY_MS));
  const [date = '', clock = ''] = moment.toISOString().split('T');
  return { day: date, time: clock.replace(/(\.000)?Z$/, '') };
}

/** The size of a sheet, and of a text in a cell, as the spreadsheet program has them. */
const COLUMNS_MAX = 16_384;
const ROWS_MAX = 1_048_576;
const CELL_CHARACTERS_MAX = 32_767;
/** Of all texts that stand in the cells of one row, not among the shared ones. */
const ROW_CHARACTERS_MAX = 1_048_576;

export interface Cell {
  /** `nothing` for a formula that was never calculated. */
  readonly type: 'number' | 'text' | 'boolean' | 'error' | 'date' | 'nothing';
  readonly text: string;
  /** Whether a formula made the value; `text` is then what it gave when the file was saved. */
  readonly isFormula: boolean;
  /** How a number is shown. */
  readonly kind: NumberKind;
}

const TYPES: ReadonlyMap<string, Cell['type']> = new Map([
  ['n', 'number'],
  ['s', 'text'],
  ['str', 'text'],
  ['inlineStr', 'text'],
  ['b', 'boolean'],
  ['e', 'error'],
  ['d', 'date'],
]);

/** The place of a column by its letters, from 0: A is 0, Z 25, AA 26; -1 when there is none. */
export function indexOfLetters(letters: string): number {
  if (!/^[A-Z]{1,3}$/.test(letters)) return -1;
  let index = 0;
  for (const letter of letters) index = index * 26 + letter.charCodeAt(0) - 64;
  return index <= COLUMNS_MAX ? index - 1 : -1;
}

/** The letters of a column by its place, from 0. */
export const lettersOfIndex = (index: number): string =>
  (index < 26 ? '' : lettersOfIndex(Math.floor(index / 26) - 1)) +
  String.fromCharCode(65 + (index % 26));

/** A text with the characters that XML cannot hold, written as `_x000D_` (ECMA-376, ST_Xstring). */
export const withoutEscapes = (text: string): string =>
  text.includes('_x')
    ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, hex) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      )
    : text;

/**
 * Collects rows from the tags of a sheet. What a sheet says of its own size is not looked at; its
 * rows and cells must stand in order, each once.
 */
export class RowListener implements XmlListener {
  rows: SourceRow<Cell | undefined>[] = [];
  private readonly texts: readonly string[];
  private readonly kinds: readonly NumberKind[];
  private isData = false;
  private number = 0;
  private cells: (Cell | undefined)[] = [];
  private index = -1;
  private characters = 0;
  private letters = '';
  private type = 'n';
  private style = 0;
  private value: string | null = null;
  private isFormula = false;
  private collecting = false;
  private phonetic = false;

  constructor(texts: readonly string[], kinds: readonly NumberKind[]) {
    this.texts = texts;
    this.kinds = kinds;
  }

  open(tag: Tag): void {
    if (tag.local === 'sheetData') this.isData = true;
    if (!this.isData) return;
    if (tag.local === 'row') this.startRow(tag);
    else if (tag.local === 'c') this.startCell(tag);
    else if (tag.local === 'f') this.isFormula = true;
    else if (tag.local === 'rPh') this.phonetic = true;
    else if ((tag.local === 'v' || tag.local === 't') && !this.phonetic) {
      this.value ??= '';
      this.collecting = true;
    }
  }

  close({ local }: Tag): void {
    if (!this.isData) return;
    if (local === 'v' || local === 't') this.collecting = false;
    else if (local === 'rPh') this.phonetic = false;
    else if (local === 'c') this.endCell();
    else if (local === 'row') this.rows.push({ line: this.number, fields: this.cells });
    else if (local === 'sheetData') this.isData = false;
  }

  text(part: string): void {
    if (!this.collecting || this.value === null) return;
    this.value += part;
    this.characters += part.length;
    if (this.value.length <= CELL_CHARACTERS_MAX && this.characters <= ROW_CHARACTERS_MAX) return;
    const message = `The cell ${this.letters}${this.number} holds more text than a workbook can`;
    throw new Refusal('line_too_long', message, { line: this.number });
  }

  private startRow(tag: Tag): void {
    const stated = attributeOf(tag, 'r');
    const number = stated === null ? this.number + 1 : Number(stated);
    if (!(Number.isInteger(number) && number > this.number && number <= ROWS_MAX)) {
      const message = 'The rows of the sheet are not in order, or not numbered';
      throw new Refusal('invalid_layout', message, { line: this.number, value: stated });
    }
    this.number = number;
    this.cells = [];
    this.index = -1;
    this.characters = 0;
  }

  private startCell(tag: Tag): void {
    const stated = attributeOf(tag, 'r');
    const letters = stated === null ? lettersOfIndex(this.index + 1) : stated.replace(/\d+$/, '');
    const index = indexOfLetters(letters);
    const isHere = stated === null || stated === `${letters}${this.number}`;
    if (!isHere || index <= this.index) {
      const message = 'The cells of the row are not in order, each once';
      throw new Refusal('invalid_layout', message, { line: this.number, value: stated });
    }
    this.index = index;
    this.letters = letters;
    this.type = attributeOf(tag, 't') ?? 'n';
    this.style = Number(attributeOf(tag, 's') ?? 0);
    this.value = null;
    this.isFormula = false;
  }

  private endCell(): void {
    const { value, isFormula } = this;
    const kind = this.kinds[this.style] ?? 'number';
    if (value === null) {
      if (isFormula) this.place({ type: 'nothing', text: '', isFormula, kind });
      return;
    }
    const type = TYPES.get(this.type);
    const text = this.type === 's' ? this.sharedText(value) : withoutEscapes(value);
    if (text === undefined || type === undefined) {
      const message = `The cell ${this.letters}${this.number} is damaged`;
      throw new Refusal('invalid_layout', message, { line: this.number });
    }
    this.place({ type, text, isFormula, kind });
  }

  private place(cell: Cell): void {
    while (this.cells.length < this.index) this.cells.push(undefined);
    this.cells.push(cell);
  }

  private sharedText(number: string): string | undefined {
    return /^\d{1,9}$/.test(number) ? this.texts[Number(number)] : undefined;
  }
}

/** A cell by its place: the line from 1, the column from 0. */
interface CellPlace {
  readonly line: number;
  readonly index: number;
}

/** The place of a cell such as A4; null when the text names none. */
export function cellPlace(text: string): CellPlace | null {
  const [, letters = '', number = ''] = /^([A-Z]{1,3})([1-9]\d{0,6})$/.exec(text) ?? [];
  const index = indexOfLetters(letters);
  return index < 0 ? null : { line: Number(number), index };
}
