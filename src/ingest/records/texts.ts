/**
 * Copies a text into memory of its own. V8 stores a slice as a view of its block: a slice of 20
 * characters would retain 256 KiB.
 */
export const ownCopy = (text: string): string => Buffer.from(text, 'utf16le').toString('utf16le');

/** Forbidden characters: controls, line separators, lone surrogates. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** True if a text is not blank, within a length, and free of forbidden characters. */
const isPrintable = (text: string, lengthMax: number): boolean =>
  text.trim() !== '' && text.length <= lengthMax && !FORBIDDEN.test(text);

/** True if a text is valid as a name or label. */
export const isLabel = (text: string): boolean => isPrintable(text, 200);

export const INVALID_LABEL =
  'The text is empty, too long (200 characters), or holds control characters';

interface SourceSpecificationEntry {
  readonly name: string;
  readonly value: string;
  readonly order: number;
}

const ENTRIES_MAX = 100;
const MEMBERS = new Set(['name', 'value', 'order']);

const isText = (value: unknown): value is string =>
  typeof value === 'string' && isPrintable(value, 1_000);

function entryOf(item: unknown, index: number): SourceSpecificationEntry | null {
  if (typeof item !== 'object' || item === null) return null;
  if (Object.keys(item).some((member) => !MEMBERS.has(member))) return null;
  const { name, value, order = index + 1 } = item as Record<string, unknown>;
  if (!isText(name) || !isText(value) || !Number.isSafeInteger(order)) return null;
  return { name, value, order: order as number };
}

/**
 * Normalizes the specification of a price, so that equal specifications are equal texts.
 * @returns JSON text; null if the input is not a list of names and values
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
