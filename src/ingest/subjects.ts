import { matchKey } from '../catalog/match-key.ts';
import { ownCopy } from './parsing/texts.ts';
import { Refusal } from './rejects/problems.ts';

/** Whether a text can be the code of a price; the table of prices has the same rule. */
export const isCode = (text: string): boolean => /^[!-~]{1,64}$/.test(text);

/** Different prices, or spellings of codes, that one file may name. */
const SUBJECTS_MAX = 100_000;

/**
 * The prices or currencies that a file names, numbered in the order of their first mention, so
 * that a staged row carries a small number.
 */
export class Subjects {
  /** As first written. */
  readonly names: string[] = [];
  /** By what they are compared with. */
  readonly keys: string[] = [];
  private readonly bySpelling = new Map<string, number>();
  private readonly byKey = new Map<string, number>();

  /**
   * The number of a price or currency, whose name was checked: at most 64 characters, so that what
   * is held of a file with any number of unknown names stays small.
   * @throws Refusal for one name too many
   */
  numberOf(name: string, line: number): number {
    const known = this.bySpelling.get(name);
    if (known !== undefined) return known;
    if (this.bySpelling.size >= SUBJECTS_MAX) {
      const message = `The file names more than ${SUBJECTS_MAX} different codes: load it in parts`;
      throw new Refusal('too_many_prices', message, { line });
    }
    const kept = ownCopy(name);
    const key = matchKey(kept);
    const number = this.byKey.get(key) ?? this.names.length;
    if (number === this.names.length) {
      this.names.push(kept);
      this.keys.push(key);
      this.byKey.set(key, number);
    }
    this.bySpelling.set(kept, number);
    return number;
  }
}
