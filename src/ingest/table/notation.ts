/** How the numbers of a file are written. */
export interface Notation {
  readonly decimal: 'point' | 'comma';
  readonly thousands: 'none' | 'comma' | 'point' | 'space' | 'apostrophe';
}

const SEPARATORS: Readonly<Record<Notation['thousands'], string>> = {
  none: '',
  comma: ',',
  point: '.',
  // Also the spaces that never break a line, of which spreadsheet programs are fond.
  space: ' \u00a0\u2009\u202f',
  apostrophe: "'\u2019",
};

const PLAIN = /^-?\d+(?:\.\d+)?$/;

/**
 * Makes a reader of numbers: the text of a plain decimal, with a point and nothing between the
 * thousands, or null when a text is not written so. Separators are either all there, each after
 * three digits, or none is; a number with separators does not begin with 0, so that 0.123 is
 * never 123.
 */
export function numberReader({ decimal, thousands }: Notation): (text: string) => string | null {
  const point = decimal === 'point' ? String.raw`\.` : ',';
  const fraction = String.raw`(?:${point}(\d+))?`;
  const plain = new RegExp(`^(-?\\d+)${fraction}$`);
  const separators = SEPARATORS[thousands];
  const grouped = new RegExp(
    `^(-?[1-9]\\d{0,2}(?:([${separators}])\\d{3})(?:\\2\\d{3})*)${fraction}$`,
  );
  return (text) => {
    // Most texts are plain decimals already.
    if (decimal === 'point' && PLAIN.test(text)) return text;
    const simple = plain.exec(text);
    if (simple) return simple[2] === undefined ? text : `${simple[1]}.${simple[2]}`;
    const match = separators === '' ? null : grouped.exec(text);
    if (!match) return null;
    const whole = (match[1] ?? '').replaceAll(match[2] ?? '', '');
    return match[3] === undefined ? whole : `${whole}.${match[3]}`;
  };
}

/** A number of the notation, for messages. */
export const sampleOf = ({ decimal, thousands }: Notation): string => {
  const separator = SEPARATORS[thousands].slice(0, 1);
  return `1${separator}234${decimal === 'point' ? '.' : ','}5`;
};
