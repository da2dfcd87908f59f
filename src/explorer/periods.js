// Periods of calculations in words. The service alone knows their days.
import { isDate } from './dates.js';

const UNITS = { M: 'month', Q: 'quarter', Y: 'year' };

const RELATIVE = /^(\d{1,4})?([MQYS])(?:([+-])(\d{1,4}))?$/;
const CUT = /^(M(?:[+-]\d{1,4})?):(\d{1,2})\/(M(?:[+-]\d{1,4})?):(\d{1,2})$/;
const ABSOLUTE = /^(\d{4})(?:-(?:Q([1-4])|(0[1-9]|1[0-2])))?$/;

/** Periods to choose from. */
export const EXAMPLES = [
  'M-1',
  'M',
  'M+1',
  '4M-1',
  'Q-1',
  'Y-1',
  'M-1:16/M:15',
  'S',
  'S+1',
  '5S+1',
];

/** All forms, for a text that is none. */
export const FORMS =
  'Write M-1 (month before), M, Q-1, Y, 4M-1 (four months), M-1:16/M:15, S (last session), 5S+1 ' +
  '(five sessions after), 2026-06, 2026-Q2, 2026-06-24, or 2026-06-01/2026-06-30';

const textIn = (options) => (date) =>
  new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }).format(new Date(date));

const dayText = textIn({ day: 'numeric', month: 'long', year: 'numeric' });
const monthText = textIn({ month: 'long', year: 'numeric' });

/** Two days as text: `1–31 May 2026`. */
export const daysText = (from, to) =>
  from === to
    ? dayText(from)
    : new Intl.DateTimeFormat('en-GB', {
        day: 'numeric',
        month: 'long',
        year: 'numeric',
        timeZone: 'UTC',
      }).formatRange(new Date(from), new Date(to));

const ordinal = (number) => {
  const tens = Math.floor((number % 100) / 10) === 1;
  return `${number}${(!tens && ['', 'st', 'nd', 'rd'][number % 10]) || 'th'}`;
};

/** A month, quarter or year from the anchor: `the month before the anchor's`. */
function unitText(unit, offset) {
  if (offset === 0) return `the ${unit} of the anchor`;
  const side = offset < 0 ? 'before' : 'after';
  const count = Math.abs(offset);
  return count === 1
    ? `the ${unit} ${side} the anchor's`
    : `${count} ${unit}s ${side} the anchor's`;
}

function sessionText(count, offset) {
  const one =
    offset > 0
      ? offset === 1
        ? 'the first session after the anchor'
        : `the ${ordinal(offset)} session after the anchor`
      : offset === 0
        ? 'the last session on or before the anchor'
        : `${Math.abs(offset)} ${offset === -1 ? 'session' : 'sessions'} before the last one on or before the anchor`;
  if (count === 1) return one;
  return offset > 0 ? `${count} sessions, from ${one} on` : `${count} sessions, up to ${one}`;
}

function relativeText([, sent, unit, sign, away]) {
  const count = Number(sent ?? 1);
  const offset = Number(`${sign ?? ''}${away ?? 0}`);
  if (unit === 'S') return sessionText(count, offset);
  const last = unitText(UNITS[unit], offset);
  return count === 1 ? last : `${count} ${UNITS[unit]}s, of which the last is ${last}`;
}

function absoluteText([text, quarter, month]) {
  if (month) return monthText(`${text}-01`);
  return quarter
    ? `the ${ordinal(Number(quarter))} quarter of ${text.slice(0, 4)}`
    : `the year ${text}`;
}

/** A period in words; null for a text that is none. */
export function periodText(text) {
  if (isDate(text)) return dayText(text);
  const [from, to, ...more] = text.split('/');
  if (to && more.length === 0 && isDate(from) && isDate(to)) {
    return from <= to ? `${daysText(from, to)}, both days included` : null;
  }
  const absolute = ABSOLUTE.exec(text);
  if (absolute) return absoluteText([absolute[0], absolute[2], absolute[3]]);
  const relative = RELATIVE.exec(text);
  if (relative) return relativeText(relative);
  const cut = CUT.exec(text);
  if (cut === null) return null;
  const [, first, firstDay, last, lastDay] = cut;
  return `from the ${ordinal(Number(firstDay))} of ${periodText(first)} to the ${ordinal(Number(lastDay))} of ${periodText(last)}`;
}

/** True if the days of a period follow from the anchor. */
export const isRelative = (text) => /[MQYS]/.test(text);
