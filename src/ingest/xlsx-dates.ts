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
