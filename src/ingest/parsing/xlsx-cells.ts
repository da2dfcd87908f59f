import { Refusal } from '../records/load-error.ts';
import type { SourceRow } from './rows.ts';
import { attributeOf, type Tag, type XmlListener } from './xml.ts';

/** The display format of a number in a spreadsheet program. */
export type NumberKind = 'number' | 'percent' | 'date' | 'time' | 'date-time';

/**
 * Built-in formats, which workbooks do not write out (ECMA-376 part 1, 18.8.30). All others are
 * numbers.
 */
const BUILT_IN: readonly (readonly [from: number, to: number, NumberKind])[] = [
  [9, 10, 'percent'],
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date-time'],
  // East Asian formats: the display depends on the language, but is always a date or a time.
  [27, 31, 'date'],
  [32, 33, 'time'],
  [34, 36, 'date'],
  [45, 47, 'time'],
  [50, 58, 'date'],
];

/** The kind of a built-in format. */
export const builtInKind = (id: number): NumberKind =>
  BUILT_IN.find(([from, to]) => id >= from && id <= to)?.[2] ?? 'number';

/** Elapsed time beyond a day or an hour: `[h]:mm`. */
const ELAPSED = /\[(?:h+|m+|s+)\]/i;
/** Literal parts of a format: quoted and escaped text, fillers, colours, locales. */
const LITERAL = /"[^"]*"?|[\\_*].|\[[^\]]*\]?|AM\/PM|A\/P/gi;

/** The kind of a custom format: `dd/mm/yyyy` is a date, `0.0%` a percentage. */
export function kindOfFormat(code: string): NumberKind {
  // Sections after a semicolon format negative numbers, zero and text.
  const first = code.replace(/"[^"]*"?|\\./g, ' ').split(';')[0] ?? '';
  const letters = first.replace(LITERAL, ' ').toLowerCase();
  if (letters.includes('general')) return 'number';
  const hasTime = ELAPSED.test(first) || /[hs]/.test(letters);
  // `m` means minutes beside hours or seconds, and months otherwise.
  const hasDate = /[yd]/.test(letters) || (!hasTime && letters.includes('m'));
  if (hasDate) return hasTime ? 'date-time' : 'date';
  if (hasTime) return 'time';
  return letters.includes('%') ? 'percent' : 'number';
}

/** A date and time of a workbook, without time zone. */
interface SerialDateTime {
  /** YYYY-MM-DD. */
  readonly day: string;
  /** `HH:MM:SS`, with milliseconds if there are any; midnight for a date without time. */
  readonly time: string;
}

const DAY_MS = 86_400_000;
/** 31 December 9999, in either date system. */
const LAST = { 1900: 2_958_465, 1904: 2_957_003 } as const;
/**
 * The 1900 date system counts a 29 February 1900, which never existed (a bug of Lotus 1-2-3 that
 * Excel kept for compatibility). Days before it count from another start.
 */
const FALSE_LEAP_DAY = 60;
const STARTS = {
  1904: Date.UTC(1904, 0, 1),
  beforeLeapDay: Date.UTC(1899, 11, 31),
  afterLeapDay: Date.UTC(1899, 11, 30),
};

/**
 * Converts the serial number of a date cell: days since the start of 1900 or 1904, with the time of
 * day as a fraction, to the millisecond.
 * @returns the date and time, or the reason why there is none
 */
export function dateTimeOfSerial(serial: number, is1904: boolean): SerialDateTime | string {
  const system = is1904 ? 1904 : 1900;
  const lowest = is1904 ? 0 : 1;
  if (!(serial >= lowest && serial < LAST[system] + 1)) {
    return `is not a day of the ${system} date system`;
  }
  const whole = Math.floor(serial);
  // Rounding may reach midnight, as in the display of the spreadsheet program.
  const inDay = Math.round((serial - whole) * DAY_MS);
  const day = whole + Math.floor(inDay / DAY_MS);
  if (!is1904 && day === FALSE_LEAP_DAY) {
    return 'is 29 February 1900, which never existed';
  }
  if (day > LAST[system]) return `is not a day of the ${system} date system`;
  const start = day < FALSE_LEAP_DAY ? STARTS.beforeLeapDay : STARTS.afterLeapDay;
  const instant = new Date((is1904 ? STARTS[1904] : start) + day * DAY_MS + (inDay % DAY_MS));
  const [date = '', clock = ''] = instant.toISOString().split('T');
  return { day: date, time: clock.replace(/(\.000)?Z$/, '') };
}

/** Limits of a sheet and of a cell text in the spreadsheet program. */
const COLUMNS_MAX = 16_384;
const ROWS_MAX = 1_048_576;
const CELL_CHARACTERS_MAX = 32_767;
/** Limit of all inline texts of one row; shared texts are not counted. */
const ROW_CHARACTERS_MAX = 1_048_576;

export interface Cell {
  /** `nothing` for a formula that was never calculated. */
  readonly type: 'number' | 'text' | 'boolean' | 'error' | 'date' | 'nothing';
  readonly text: string;
  /** True if the value is the result of a formula, as of the last save. */
  readonly isFormula: boolean;
  /** The display of a number. */
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

/** Index of a column from 0, by its letters: A is 0, Z 25, AA 26; -1 if invalid. */
export function indexOfLetters(letters: string): number {
  if (!/^[A-Z]{1,3}$/.test(letters)) return -1;
  let index = 0;
  for (const letter of letters) index = index * 26 + letter.charCodeAt(0) - 64;
  return index <= COLUMNS_MAX ? index - 1 : -1;
}

/** Letters of a column, by its index from 0. */
export const lettersOfIndex = (index: number): string =>
  (index < 26 ? '' : lettersOfIndex(Math.floor(index / 26) - 1)) +
  String.fromCharCode(65 + (index % 26));

/** Decodes escaped characters such as `_x000D_` (ECMA-376, ST_Xstring). */
export const withoutEscapes = (text: string): string =>
  text.includes('_x')
    ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, hex) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      )
    : text;

/**
 * Collects rows from the tags of a sheet. The stated dimension of the sheet is ignored. Rows and
 * cells must be in order, without duplicates.
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
    const message = `The cell ${this.letters}${this.number} holds more text than a workbook allows`;
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
      const message = 'The cells of the row are not in order, or one appears twice';
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
      if (isFormula) this.addCell({ type: 'nothing', text: '', isFormula, kind });
      return;
    }
    const type = TYPES.get(this.type);
    const text = this.type === 's' ? this.sharedText(value) : withoutEscapes(value);
    if (text === undefined || type === undefined) {
      const message = `The cell ${this.letters}${this.number} is damaged`;
      throw new Refusal('invalid_layout', message, { line: this.number });
    }
    this.addCell({ type, text, isFormula, kind });
  }

  private addCell(cell: Cell): void {
    while (this.cells.length < this.index) this.cells.push(undefined);
    this.cells.push(cell);
  }

  private sharedText(number: string): string | undefined {
    return /^\d{1,9}$/.test(number) ? this.texts[Number(number)] : undefined;
  }
}

/** Position of a cell: the line from 1, the column index from 0. */
interface CellPlace {
  readonly line: number;
  readonly index: number;
}

/** Parses a cell reference such as A4; null if invalid. */
export function cellPlace(text: string): CellPlace | null {
  const [, letters = '', number = ''] = /^([A-Z]{1,3})([1-9]\d{0,6})$/.exec(text) ?? [];
  const index = indexOfLetters(letters);
  return index < 0 ? null : { line: Number(number), index };
}
