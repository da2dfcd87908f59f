/** Values are counted in ten-thousandths, so that no sum or rounding goes through fractions. */
const SCALE = 10_000;

/** A decimal text with at most four decimals as a whole number of ten-thousandths. */
export function scaledOf(text: string): number {
  const match = /^(-?)(\d+)(?:\.(\d{1,4}))?$/.exec(text);
  if (!match) throw new Error(`"${text}" is not a decimal number with at most four decimals`);
  const [, sign, whole = '', fraction = ''] = match;
  const scaled = Number(whole) * SCALE + Number(fraction.padEnd(4, '0'));
  return sign ? -scaled : scaled;
}

/** Ten-thousandths as decimal text, without trailing zeros. */
export function textOf(scaled: number): string {
  const amount = Math.abs(scaled);
  const fraction = String(amount % SCALE)
    .padStart(4, '0')
    .replace(/0+$/, '');
  const text = `${Math.trunc(amount / SCALE)}${fraction && '.'}${fraction}`;
  return scaled < 0 ? `-${text}` : text;
}

/** 5, 2, 1 times each power of ten that can be a tick, the greatest first. */
const TICKS = [7, 6, 5, 4, 3, 2, 1, 0].flatMap((power) =>
  [5, 2, 1].map((each) => each * 10 ** power),
);

/** The greatest usual tick up to a limit that divides all the values; all in ten-thousandths. */
export const tickOf = (limit: number, values: readonly number[]): number =>
  TICKS.find((tick) => tick <= limit && values.every((value) => value % tick === 0)) ?? 1;
