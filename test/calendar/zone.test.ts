import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import t from 'tap';
import { dayIn, instantAt, zoneFault } from '../../src/calendar/zone.ts';
import { dayOf, dayText } from '../../src/std/days.ts';

const at = (day: string, time: string, zone: string) => instantAt(dayOf(day), time, zone);

t.test('a due time is local on both days of daylight saving, and on each side', async (t) => {
  const London = (day: string) => at(day, '16:00', 'Europe/London');
  t.strictSame(['2026-03-28', '2026-03-29', '2026-10-24', '2026-10-25'].map(London), [
    '2026-03-28T16:00:00Z',
    '2026-03-29T15:00:00Z',
    '2026-10-24T15:00:00Z',
    '2026-10-25T16:00:00Z',
  ]);
  const NewYork = (day: string) => at(day, '16:00', 'America/New_York');
  t.strictSame(['2026-03-07', '2026-03-08', '2026-10-31', '2026-11-01'].map(NewYork), [
    '2026-03-07T21:00:00Z',
    '2026-03-08T20:00:00Z',
    '2026-10-31T20:00:00Z',
    '2026-11-01T21:00:00Z',
  ]);
  t.equal(at('2026-07-01', '16:30', 'Asia/Shanghai'), '2026-07-01T08:30:00Z');
});

t.test(
  'a time that clocks skip is by the clock before, one that comes twice is the first',
  async (t) => {
    t.equal(at('2026-03-29', '01:30', 'Europe/London'), '2026-03-29T01:30:00Z');
    t.equal(at('2026-10-25', '01:30', 'Europe/London'), '2026-10-25T00:30:00Z');
    t.equal(at('2026-03-08', '02:30', 'America/New_York'), '2026-03-08T07:30:00Z');
    t.equal(at('2026-11-01', '01:30', 'America/New_York'), '2026-11-01T05:30:00Z');
  },
);

const ZONES = [
  'Europe/London',
  'America/New_York',
  'Asia/Shanghai',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'America/St_Johns',
  'Africa/Johannesburg',
  'UTC',
];

const PYTHON = `
import json, sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
for zone, text in json.load(sys.stdin):
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    print(local.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))
`;

t.test('instants are those of another implementation of time zones', async (t) => {
  const cases = fc.sample(
    fc.tuple(
      fc.constantFrom(...ZONES),
      fc.integer({ min: dayOf('1995-01-01'), max: dayOf('2026-12-31') }),
      fc.integer({ min: 0, max: 1439 }),
    ),
    4000,
  );
  const timeOf = (minutes: number): string =>
    [Math.floor(minutes / 60), minutes % 60].map((each) => String(each).padStart(2, '0')).join(':');
  const input = cases.map(([zone, day, minutes]) => [zone, `${dayText(day)}T${timeOf(minutes)}`]);
  const expected = execFileSync('python3', ['-I', '-c', PYTHON], { input: JSON.stringify(input) })
    .toString()
    .trim()
    .split('\n');
  t.strictSame(
    cases.map(([zone, day, minutes]) => instantAt(day, timeOf(minutes), zone)),
    expected,
  );
});

t.test('the day of an instant is that of its zone', async (t) => {
  const ms = Date.parse('2026-06-30T16:30:00.999Z');
  t.equal(dayText(dayIn('UTC', ms)), '2026-06-30');
  t.equal(dayText(dayIn('Asia/Shanghai', ms)), '2026-07-01');
});

t.test('a zone is one of IANA, spelt as there', async (t) => {
  for (const zone of [...ZONES, 'Asia/Calcutta']) t.equal(zoneFault(zone), null, zone);
  t.match(zoneFault('europe/london'), /written Europe\/London/);
  for (const zone of ['Europe/Lundon', '+01:00', 'GMT+1x', '', 'Europe/London ']) {
    t.type(zoneFault(zone), 'string', zone);
  }
});
