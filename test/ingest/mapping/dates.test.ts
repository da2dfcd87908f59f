import t from 'tap';
import { datePattern, endOf, PatternError } from '../../../src/ingest/mapping/date-pattern.ts';
import {
  builtInKind,
  dateTimeOfSerial,
  kindOfFormat,
} from '../../../src/ingest/parsing/xlsx-cells.ts';

t.test('dates are read by their pattern only; a month, quarter or year is its last day', (t) => {
  const cases: Record<string, Record<string, string | null>> = {
    'dd.MM.yyyy': { '29.02.2024': '2024-02-29', '29.02.2023': null, '1.2.2024': null, '': null },
    'd/M/yyyy': { '1/2/2024': '2024-02-01', '31/12/2024': '2024-12-31', '31/13/2024': null },
    'MM/dd/yyyy': { '12/31/2024': '2024-12-31', '31/12/2024': null },
    yyyyMMdd: { '20240229': '2024-02-29', '2024229': null },
    'd MMMM yyyy': { '3 march 2024': '2024-03-03', '3 Mar 2024': null, '3 März 2024': null },
    'dd-MMM-yyyy': { '03-SEP-2024': '2024-09-03', '03-Sept-2024': '2024-09-03' },
    'MMM yyyy': { 'Feb 2023': '2023-02-28', 'Feb  2023': null, 'February 2023': null },
    "yyyy'M'MM": { '1960M01': '1960-01-31', '1960m02': '1960-02-29', '1960M1': null },
    yyyyMMM: { '2010Jan': '2010-01-31' },
    "'Q'Q yyyy": { 'Q1 2024': '2024-03-31', 'Q4 2024': '2024-12-31', 'Q5 2024': null },
    "yyyy 'o''clock'": { "2024 o'clock": '2024-12-31' },
    yyyy: { '1850': '1850-12-31', '0000': '0000-12-31', '185': null, '18500': null },
    'yyyy.MM.dd (HH:mm)': { '2024.01.05 (7:30)': null, '2024.01.05 (07:30)': '2024-01-05' },
  };
  for (const [pattern, texts] of Object.entries(cases)) {
    const reader = datePattern(pattern);
    for (const [text, expected] of Object.entries(texts)) {
      t.equal(reader.read(text)?.day ?? null, expected, `${pattern} ${text}`);
    }
  }
  const moment = datePattern('yyyy-MM-dd HH:mm:ssXXX').read('2024-01-05 16:00:01+08:00');
  t.strictSame(moment, { day: '2024-01-05', time: '16:00:01', offset: '+08:00' });
  t.equal(datePattern('d.M.yyyy H:mm').read('1.2.2024 9:05')?.time, '09:05:00');
  t.equal(datePattern('yyyy-MM-dd HH:mm').read('2024-01-05 24:00'), null);
  t.strictSame(
    (['day', 'month', 'quarter', 'year'] as const).map((period) => endOf(period, '2024-02-10')),
    ['2024-02-10', '2024-02-29', '2024-03-31', '2024-12-31'],
  );
  t.end();
});

t.test('an invalid pattern is refused with a message', (t) => {
  const cases: Record<string, RegExp> = {
    'dd.MM.yy': /a year has four digits: yyyy/,
    'dd.mm.yyyy': /a month is MM/,
    'dd.yyyy-MM-dd': /the day appears twice/,
    'dd.yyyy': /the day needs the month/,
    'MM.dd': /the year, yyyy, is missing/,
    'yyyy-MM-MM': /the month appears twice/,
    'yyyy-Q-MM': /a quarter and a month exclude each other/,
    'yyyy-MM-dd HH': /the hour needs the minute/,
    yyyyYY: /"YY" is not a date part/,
    'yyyyM01 foo': /"f" is not a date part/,
    "yyyy 'x": /never closed/,
  };
  for (const [pattern, why] of Object.entries(cases)) {
    t.throws(() => datePattern(pattern), { name: PatternError.name, message: why }, pattern);
  }
  t.end();
});

t.test('serial numbers of both date systems are days, but for the day that never was', (t) => {
  const day = (serial: number, is1904 = false) => {
    const moment = dateTimeOfSerial(serial, is1904);
    return typeof moment === 'string' ? moment : `${moment.day} ${moment.time}`;
  };
  t.strictSame(
    [1, 59, 60, 60.5, 61, 45_292, 2_958_465].map((serial) => day(serial)),
    [
      '1900-01-01 00:00:00',
      '1900-02-28 00:00:00',
      'is 29 February 1900, which never existed',
      'is 29 February 1900, which never existed',
      '1900-03-01 00:00:00',
      '2024-01-01 00:00:00',
      '9999-12-31 00:00:00',
    ],
  );
  t.strictSame(
    [0, 59, 60, 43_830].map((serial) => day(serial, true)),
    ['1904-01-01 00:00:00', '1904-02-29 00:00:00', '1904-03-01 00:00:00', '2024-01-01 00:00:00'],
  );
  t.strictSame(
    [45_292.5, 45_292.666_666_666_67, 45_292.999_999_999_9, 45_292 + 1 / 86_400_000].map((each) =>
      day(each),
    ),
    [
      '2024-01-01 12:00:00',
      '2024-01-01 16:00:00',
      '2024-01-02 00:00:00',
      '2024-01-01 00:00:00.001',
    ],
  );
  for (const serial of [0, 0.5, -1, 2_958_466, 1e300, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.equal(day(serial), 'is not a day of the 1900 date system');
  }
  t.equal(day(-1, true), 'is not a day of the 1904 date system');
  t.equal(day(2_957_004, true), 'is not a day of the 1904 date system');
  t.end();
});

t.test('the formats of cells distinguish dates, times and percentages from numbers', (t) => {
  const cases: Record<string, string> = {
    General: 'number',
    '0.00': 'number',
    '#,##0.00 "USD per day"': 'number',
    '_-* #,##0.00 [$€-407]_-;-* #,##0.00_d': 'number',
    '0.00E+00': 'number',
    '0.0\\d': 'number',
    '[Red]0;[Yellow]-0': 'number',
    '@': 'number',
    '0%': 'percent',
    '0.0 %;[Red]-0.0 %': 'percent',
    'dd/mm/yyyy': 'date',
    'mmm\\-yy': 'date',
    '[$-409]mmmm\\ d\\,\\ yyyy;@': 'date',
    'yyyy"年"m"月"d"日"': 'date',
    mmmm: 'date',
    'yyyy\\-mm\\-dd\\ hh:mm': 'date-time',
    'd.m.yyyy h:mm AM/PM': 'date-time',
    'h:mm': 'time',
    'mm:ss.0': 'time',
    '[h]:mm:ss': 'time',
    '[mm]': 'time',
    '0.0"%"': 'number',
  };
  for (const [code, kind] of Object.entries(cases)) t.equal(kindOfFormat(code), kind, code);
  t.strictSame(
    [0, 2, 9, 10, 11, 14, 17, 18, 21, 22, 30, 37, 45, 47, 49, 57, 163].map(builtInKind),
    [
      ...['number', 'number', 'percent', 'percent', 'number', 'date', 'date', 'time', 'time'],
      ...['date-time', 'date', 'number', 'time', 'time', 'number', 'date', 'number'],
    ],
  );
  t.end();
});
