import { matchKey } from '../../catalog/match-key.ts';
import { inOneSpelling } from '../../catalog/nearest.ts';

/** Marks over and under letters: `Göteborg` is compared as `goteborg`. */
const MARKS = /\p{M}+/gu;

/** A word: letters and digits, with the decimal places of a number. */
const WORD = /[\p{L}\p{N}]+(?:[.,]\p{N}+)*/gu;

/** Texts without another Unicode form, which need no normalization: most of them. */
const PLAIN = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/;

/** The form in which texts are compared: match key, without marks, in one spelling. */
export function comparedForm(text: string): string {
  if (PLAIN.test(text)) return inOneSpelling(text.toLowerCase());
  return inOneSpelling(matchKey(text).normalize('NFD').replace(MARKS, ''));
}

/** The words of a text in its compared form; `%`, `*` and `-` only separate words. */
export const wordsOf = (text: string): readonly string[] => comparedForm(text).match(WORD) ?? [];

/**
 * A text in its compared form with some words replaced.
 * @param replacement the new word; an empty text leaves the word out
 */
export const withWords = (text: string, replacement: (word: string) => string): string =>
  comparedForm(text).replace(WORD, replacement).replace(/\s+/gu, ' ').trim();

/** Letters of a word below which no typing error is assumed. */
const NEAR_LENGTH_MIN = 3;

/** The bound for a word with digits: thousands of codes begin with the same digit. */
const NEAR_DIGITS_MIN = 5;

/** True if a word is long enough to be compared with typing errors. */
export const canBeNear = (word: string): boolean =>
  word.length >= (/\d/.test(word) ? NEAR_DIGITS_MIN : NEAR_LENGTH_MIN);

/** Minimum length of a word that may also be the beginning of a token. */
const BEGINNING_LENGTH_MIN = 5;

/**
 * True if a token differs from the word by one typing error: a missing, an additional or another
 * letter, or two swapped neighbours. A token may continue after a long word.
 */
export function isNear(word: string, token: string): boolean {
  const isWhole = word.length < BEGINNING_LENGTH_MIN;
  let at = 0;
  while (at < word.length && word[at] === token[at]) at += 1;
  /** True if the token continues with the word from these offsets. */
  const continuesAt = (inWord: number, inToken: number): boolean => {
    const rest = word.slice(inWord);
    return isWhole ? token.slice(inToken) === rest : token.startsWith(rest, inToken);
  };
  const isSwapped = word[at] === token[at + 1] && word[at + 1] === token[at];
  return (
    continuesAt(at + 1, at + 1) ||
    continuesAt(at, at + 1) ||
    continuesAt(at + 1, at) ||
    (isSwapped && continuesAt(at + 2, at + 2))
  );
}

/** The word with its two middle letters swapped. */
export function withMiddleSwapped(word: string): string {
  const middle = word.length >> 1;
  const [before, after] = [word[middle - 1] ?? '', word[middle] ?? ''];
  return `${word.slice(0, middle - 1)}${after}${before}${word.slice(middle + 1)}`;
}
