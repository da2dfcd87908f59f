import { indexOfLetters } from '../xlsx-rows.ts';

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
