import { Refusal } from '../rejects/problems.ts';
import type { Row } from './rows.ts';
import type { NumberKind } from './xlsx-formats.ts';
import { attributeOf, type Tag, type XmlListener } from './xml.ts';

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
  rows: Row<Cell | undefined>[] = [];
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
