/** What a number in a cell is, by the way in which the spreadsheet program shows it. */
export type NumberKind = 'number' | 'percent' | 'date' | 'time' | 'date-time';

/** Formats that no workbook writes out (ECMA-376 part 1, 18.8.30); the others are numbers. */
const BUILT_IN: readonly (readonly [from: number, to: number, NumberKind])[] = [
  [9, 10, 'percent'],
  [14, 17, 'date'],
  [18, 21, 'time'],
  [22, 22, 'date-time'],
  // East Asian formats: what they show depends on the language, and is always a date or a time.
  [27, 31, 'date'],
  [32, 33, 'time'],
  [34, 36, 'date'],
  [45, 47, 'time'],
  [50, 58, 'date'],
];

/** The kind of a format that a workbook refers to by a number of its own. */
export const builtInKind = (id: number): NumberKind =>
  BUILT_IN.find(([from, to]) => id >= from && id <= to)?.[2] ?? 'number';

/** Hours, minutes or seconds that count on beyond a day or an hour: `[h]:mm`. */
const ELAPSED = /\[(?:h+|m+|s+)\]/i;
/** What is shown as it stands or not at all: quoted and escaped text, fillers, colours, locales. */
const LITERAL = /"[^"]*"?|[\\_*].|\[[^\]]*\]?|AM\/PM|A\/P/gi;

/** The kind of a format that is written out: `dd/mm/yyyy` is a date, `0.0%` a percentage. */
export function kindOfFormat(code: string): NumberKind {
  // What follows a semicolon is for negative numbers, zero and text.
  const first = code.replace(/"[^"]*"?|\\./g, ' ').split(';')[0] ?? '';
  const letters = first.replace(LITERAL, ' ').toLowerCase();
  if (letters.includes('general')) return 'number';
  const hasTime = ELAPSED.test(first) || /[hs]/.test(letters);
  // An m beside hours or seconds means minutes, alone it is a month.
  const hasDate = /[yd]/.test(letters) || (!hasTime && letters.includes('m'));
  if (hasDate) return hasTime ? 'date-time' : 'date';
  if (hasTime) return 'time';
  return letters.includes('%') ? 'percent' : 'number';
}

/** A moment of a workbook: it knows neither time zones nor leap seconds. */
interface SerialMoment {
  /** YYYY-MM-DD. */
  readonly day: string;
  /** `HH:MM:SS`, with milliseconds where there are some; midnight for a day alone. */
  readonly time: string;
}

const DAY_MS = 86_400_000;
/** The last day of the year 9999, in either system. */
const LAST = { 1900: 2_958_465, 1904: 2_957_003 } as const;
/**
 * The system of 1900 counts a 29 February 1900, which there never was (a fault of Lotus 1-2-3
 * that Excel took over to read its files): days before it are counted from another start.
 */
const FALSE_LEAP_DAY = 60;
const STARTS = {
  1904: Date.UTC(1904, 0, 1),
  beforeLeapDay: Date.UTC(1899, 11, 31),
  afterLeapDay: Date.UTC(1899, 11, 30),
};

/**
 * The moment that a date cell holds: days since the start of 1900, or of 1904 in workbooks that
 * say so, with the time of day as a fraction, to the millisecond. A text instead of a moment
 * says why there is none.
 */
export function momentOfSerial(serial: number, is1904: boolean): SerialMoment | string {
  const system = is1904 ? 1904 : 1900;
  const least = is1904 ? 0 : 1;
  if (!(serial >= least && serial < LAST[system] + 1)) {
    return `is no day of the ${system} date system`;
  }
  const whole = Math.floor(serial);
  // Rounding may reach midnight, as it does on the screen.
  const inDay = Math.round((serial - whole) * DAY_MS);
  const day = whole + Math.floor(inDay / DAY_MS);
  if (!is1904 && day === FALSE_LEAP_DAY) {
    return 'is 29 February 1900, a day that there never was';
  }
  if (day > LAST[system]) return `is no day of the ${system} date system`;
  const start = day < FALSE_LEAP_DAY ? STARTS.beforeLeapDay : STARTS.afterLeapDay;
  const moment = new Date((is1904 ? STARTS[1904] : start) + day * DAY_MS + (inDay % DAY_MS));
  const [date = '', clock = ''] = moment.toISOString().split('T');
  return { day: date, time: clock.replace(/(\.000)?Z$/, '') };
}
