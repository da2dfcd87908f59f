/**
 * The same text in memory of its own. What is cut out of a block of the file is only a view of it
 * inside V8, and keeping a code of 20 characters would keep 256 KiB.
 */
export const ownCopy = (text: string): string => Buffer.from(text, 'utf16le').toString('utf16le');

/** Characters that no text of ours holds: controls, line separators, halves of a character. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** True for a text that is not blank, within a length, in characters that may be shown anywhere. */
const isPrintable = (text: string, lengthMax: number): boolean =>
  text.trim() !== '' && text.length <= lengthMax && !FORBIDDEN.test(text);

/** True for a text that may be a name, or a text beside a name. */
export const isLabel = (text: string): boolean => isPrintable(text, 200);

export const INVALID_LABEL =
  'The text is empty, too long (200 characters), or holds control characters';

interface SpecificationEntry {
  readonly name: string;
  readonly value: string;
  readonly order: number;
}

const ENTRIES_MAX = 100;
const MEMBERS = new Set(['name', 'value', 'order']);

const isText = (value: unknown): value is string =>
  typeof value === 'string' && isPrintable(value, 1_000);

function entryOf(item: unknown, index: number): SpecificationEntry | null {
  if (typeof item !== 'object' || item === null) return null;
  if (Object.keys(item).some((member) => !MEMBERS.has(member))) return null;
  const { name, value, order = index + 1 } = item as Record<string, unknown>;
  if (!isText(name) || !isText(value) || !Number.isSafeInteger(order)) return null;
  return { name, value, order: order as number };
}

/**
 * The specification of a price from JSON, in the one notation that is stored, so that two equal
 * ones are equal texts; null when it is not a list of names and values.
 */
export function specificationOf(json: string | null): string | null {
  if (json === null) return '[]';
  let list: unknown;
  try {
    list = JSON.parse(json);
  } catch {
    return null;
  }
  if (!Array.isArray(list) || list.length > ENTRIES_MAX) return null;
  const entries = list.map(entryOf);
  if (entries.some((entry) => entry === null)) return null;
  return JSON.stringify(entries);
}
