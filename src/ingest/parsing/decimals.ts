/** Exact decimals as text. A function that uses a double states why it loses no digit. */

/** Most significant digits of a point, counted at the finest decimals among its values. */
export const DIGITS_MAX = 15;
export const DECIMALS_MAX = 10;

/** A decimal in its shortest form; most inputs are. */
const SHORTEST = /^(?:0|-?(?:[1-9]\d*|0(?=\.))(?:\.\d*[1-9])?)$/;
const PLAIN = /^(-?)0*(\d+)(?:\.(?=\d)(\d*?)0*)?$/;

/**
 * Shortens a plain decimal: no leading zeros, no trailing zeros, no `-0`. Exponents, thousands
 * separators, decimal commas, `+5`, `.5` and `5.` are not plain.
 * @returns null if the text is not a plain decimal
 */
export function plainDecimal(text: string): string | null {
  if (text.length > 64) return null;
  if (SHORTEST.test(text)) return text;
  const match = PLAIN.exec(text);
  if (!match) return null;
  const [, sign, whole, fraction] = match;
  if (!fraction) return whole === '0' ? '0' : `${sign}${whole}`;
  return `${sign}${whole}.${fraction}`;
}

/** States why a text is not a plain decimal, and what to write instead. */
export function notDecimal(text: string): string {
  if (/^[-+]?(nan|inf(inity)?)$/i.test(text)) return 'is not a number; leave the field empty';
  if (/^-?\d{30}/.test(text)) return 'has more digits than any price';
  if (/^-?\d+,\d+$/.test(text))
    return 'has a comma: write a decimal as 1234.5, and a thousand without a separator, as 1000';
  if (/^-?\d[\d,.\u00a0\u202f' ]*\d$/.test(text)) return 'has a thousands separator: write 1234.5';
  if (/^[-+]?[\d.]+e[-+]?\d+$/i.test(text)) return 'has an exponent: write it out';
  if (text !== text.trim()) return 'has spaces around it';
  return 'is not a plain decimal number such as 1234.5';
}

/** Number of decimals of a plain decimal. */
const scaleOf = (decimal: string): number => {
  const point = decimal.indexOf('.');
  return point < 0 ? 0 : decimal.length - point - 1;
};

/** Number of digits before the decimal point, without a leading zero. */
const wholeDigitsOf = (decimal: string): number => {
  const start = decimal.startsWith('-') ? 1 : 0;
  const point = decimal.indexOf('.');
  const digits = (point < 0 ? decimal.length : point) - start;
  return digits === 1 && decimal[start] === '0' ? 0 : digits;
};

/**
 * States why a point cannot be stored exactly; null if it can. An absent `low` or `high` is "0".
 */
export function tooPrecise(low: string, mid: string, high: string): string | null {
  const scale = Math.max(scaleOf(low), scaleOf(mid), scaleOf(high));
  if (scale > DECIMALS_MAX) return `has more than ${DECIMALS_MAX} decimals`;
  const whole = Math.max(wholeDigitsOf(low), wholeDigitsOf(mid), wholeDigitsOf(high));
  if (whole + scale <= DIGITS_MAX) return null;
  return `needs more than ${DIGITS_MAX} significant digits at the finest decimals of its row`;
}

/** The exact number digits / 10^scale; its digits are at most 15. */
export interface ExactDecimal {
  readonly digits: number;
  readonly scale: number;
}

/** Parses a plain decimal of at most 15 digits. */
export const exactDecimal = (decimal: string): ExactDecimal => ({
  digits: Number(decimal.replace('.', '')),
  scale: scaleOf(decimal),
});

/**
 * True if a ≤ b, for decimals of at most 15 significant digits. Conversion to doubles keeps such
 * decimals distinct and in order, so the comparison is exact.
 */
export const atMost = (a: string, b: string): boolean => Number(a) <= Number(b);

const SCIENTIFIC = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d{1,4}))?$/;

/**
 * Converts a number with or without exponent (JSON, XML) to a plain decimal, exactly.
 * @returns null if the text is not a number, or its exponent is beyond any price
 */
export function writtenOut(text: string): string | null {
  const match = text.length > 64 ? null : SCIENTIFIC.exec(text);
  if (!match) return null;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match;
  const digits = whole + fraction;
  const point = whole.length + Number(exponent);
  if (point > 60 || point < -60) return null;
  const padded = point <= 0 ? '0'.repeat(1 - point) + digits : digits.padEnd(point, '0');
  const at = Math.max(point, 1);
  return plainDecimal(`${sign}${padded.slice(0, at)}.${padded.slice(at)}0`);
}

/**
 * The number that a workbook cell shows. Workbooks store binary doubles with up to 17 digits: 0.14
 * is stored as `0.14000000000000001`. A text of at most 15 significant digits is exact. A longer
 * text is rounded to 15 significant digits, as spreadsheet programs do: every decimal of up to 15
 * digits survives the conversion to a double and back.
 */
export function cellDecimal(text: string): string | null {
  const exact = writtenOut(text);
  if (exact === null) return null;
  const significant = exact.replace(/^-?0*\.?0*/, '').replace('.', '');
  if (significant.length <= DIGITS_MAX) return exact;
  return writtenOut(Number(text).toPrecision(DIGITS_MAX));
}

/** The exact factor digits / 10^scale. */
export interface Factor {
  readonly digits: bigint;
  readonly scale: number;
}

/** Multiplies a plain decimal by a factor, exactly; the result is not shortened. */
export function multiplied(decimal: string, { digits, scale }: Factor): string {
  const point = decimal.indexOf('.');
  const decimals = scale + (point < 0 ? 0 : decimal.length - point - 1);
  const product = BigInt(point < 0 ? decimal : decimal.replace('.', '')) * digits;
  const text = (product < 0n ? -product : product).toString().padStart(decimals + 1, '0');
  const at = text.length - decimals;
  const whole = `${product < 0n ? '-' : ''}${text.slice(0, at)}`;
  return decimals === 0 ? whole : `${whole}.${text.slice(at)}`;
}
