import t from 'tap';
import { lateness } from '../../src/calendar/lateness.ts';
import { calendarOf, listOf } from './support.ts';

const PRICE = { lastDate: '2026-12-11', launched: null, frequency: 'W' };
const at = (instant: string, graceMinutes = 60) => ({ nowMs: Date.parse(instant), graceMinutes });
const weekly = calendarOf({ weekly: ['friday'] }, listOf({}, { until: '2026-12-31' }));

t.test('a price is late from the end of the grace after its due instant', async (t) => {
  t.equal(lateness(weekly, PRICE, at('2026-12-18T17:00:00Z')), null);
  t.strictSame(lateness(weekly, PRICE, at('2026-12-18T17:00:00.001Z')), {
    by: 'calendar',
    day: '2026-12-18',
    since: '2026-12-18T17:00:00Z',
  });
  t.equal(lateness(weekly, PRICE, at('2026-12-18T17:30:00Z', 120)), null);
  t.ok(lateness(weekly, PRICE, at('2026-12-18T16:00:01Z', 0)));
  t.equal(lateness(weekly, { ...PRICE, lastDate: '2026-12-18' }, at('2026-12-19T00:00:00Z')), null);
});

t.test('unknown is not late: beyond the list, and without points and launch', async (t) => {
  const beyond = { ...PRICE, lastDate: '2026-12-25' };
  t.equal(lateness(weekly, beyond, at('2030-01-01T00:00:00Z')), null);
  t.equal(lateness(weekly, { ...PRICE, lastDate: null }, at('2030-01-01T00:00:00Z')), null);
  t.match(
    lateness(
      weekly,
      { ...PRICE, lastDate: null, launched: '2026-12-18' },
      at('2026-12-18T18:00:00Z'),
    ),
    {
      day: '2026-12-18',
    },
  );
});

t.test('a price without a calendar is late after the allowance of its frequency', async (t) => {
  const allowed = { D: 7, '2xW': 10, W: 16, '2W': 32, M: 75, Q: 200, A: 731 };
  for (const [frequency, days] of Object.entries(allowed)) {
    const price = { lastDate: '2026-01-01', launched: null, frequency };
    const endMs = Date.parse('2026-01-01T00:00:00Z') + (days + 1) * 86_400_000;
    t.equal(lateness(null, price, { nowMs: endMs, graceMinutes: 0 }), null, frequency);
    t.match(lateness(null, price, { nowMs: endMs + 1, graceMinutes: 0 }), { by: 'frequency' });
  }
  t.equal(lateness(null, { ...PRICE, frequency: null }, at('2036-01-01T00:00:00Z')), null);
});

t.test('a holiday that is added three days before makes nothing late', async (t) => {
  const monday = (days: Readonly<Record<string, string>>) =>
    calendarOf({ weekly: ['monday'] }, listOf(days), { policy: 'nearest' });
  const price = { lastDate: '2022-09-12', launched: null, frequency: 'W' };
  const evening = at('2022-09-19T20:00:00Z');
  t.ok(lateness(monday({}), price, evening));
  t.equal(lateness(monday({ '2022-09-19': 'A funeral' }), price, evening), null);
});
