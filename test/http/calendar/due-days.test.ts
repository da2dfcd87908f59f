import ICAL from 'ical.js';
import t from 'tap';
import { buildApp } from '../../../src/app.ts';
import { createKey, revokeKey, rotateKey } from '../../../src/auth/keys/keys.ts';
import type { Scope } from '../../../src/catalog/scopes.ts';
import { loggerOf } from '../../../src/process/log.ts';
import { CALENDARS, loadCalendarText } from '../../ingest/calendar/support.ts';
import { describePrices, loadingDatabase, loadText, points } from '../../ingest/support/loading.ts';
import type { TestDatabase } from '../../support/database/database.ts';
import { keyFor, type Reply, type Service, serviceOn } from '../../support/http/service.ts';
import { testConfig } from '../../support/http/test-config.ts';

const NOW = Date.parse('2026-12-18T17:30:00Z');

/** Two weekly prices of aluminium, of which the first has values of 4 and 11 December. */
async function weekly(test: Parameters<typeof loadingDatabase>[0]): Promise<TestDatabase> {
  const database = await loadingDatabase(test);
  await describePrices(database.client, 'XX-1', 'XX-2', 'XX-3');
  await loadText(
    test,
    database.client,
    'csv',
    points(
      ...['XX-1,2026-12-04,,10,,', 'XX-1,2026-12-11,,10,,'],
      ...['XX-2,2026-12-04,,10,,', 'XX-2,2026-12-18,,10,,'],
    ).replaceAll('2026', '2025'),
  );
  return database;
}

const get = (
  service: Service,
  query: string,
  headers: Record<string, string> = {},
): Promise<Reply> => service.request({ method: 'GET', url: `/v3/calendar${query}`, headers });

const TEXT = CALENDARS.replace('2026-12-25: Christmas Day', '2025-12-26: Boxing Day').replace(
  'from: 2025',
  'from: 2024',
);
const RANGE = '?from=2025-12-05&to=2026-01-02';
const CLOCK = Date.parse('2025-12-18T17:30:00Z');

t.test('due days have their instants and states, by the clock that is given', async (t) => {
  const database = await weekly(t);
  await loadCalendarText(t, database.client, TEXT);
  let nowMs = CLOCK;
  const service = await serviceOn(t, database, {}, undefined, () => nowMs);
  const statuses = async () => {
    const { json } = await get(service, RANGE);
    return Object.fromEntries(
      json.data.map(
        ({ code, days }: { code: string; days: { date: string; status: string }[] }) => [
          code,
          days.map(({ date, status }) => `${date} ${status}`),
        ],
      ),
    );
  };
  const days = ['2025-12-05', '2025-12-12', '2025-12-19', '2025-12-25', '2026-01-02'];
  t.same(await statuses(), {
    'XX-1': days.map((day) => `${day} ${day < '2025-12-18' ? 'late' : 'due'}`),
    'XX-2': days.map((day) => `${day} ${day < '2025-12-18' ? 'late' : 'due'}`),
    'XX-3': [],
  });
  await loadText(t, database.client, 'csv', points('XX-1,2025-12-12,,10,,'));
  t.equal((await statuses())['XX-1']?.[1], '2025-12-12 published');
  nowMs = Date.parse('2025-12-19T17:00:00Z');
  t.equal((await statuses())['XX-1']?.[2], '2025-12-19 due', 'the grace of an hour is not over');
  nowMs += 1;
  t.equal((await statuses())['XX-1']?.[2], '2025-12-19 late');
  const { json } = await get(service, '?codes=XX-1&from=2025-12-24&to=2025-12-25');
  t.match(json.data, [
    {
      market: 'aluminium',
      calendar: 'weekly',
      reason: null,
      days: [
        {
          date: '2025-12-25',
          dueAt: '2025-12-25T16:00:00Z',
          holiday: 'Boxing Day',
          movedFrom: '2025-12-26',
        },
      ],
    },
  ]);
});

t.test('without a calendar, and beyond the days that it knows, the reason is stated', async (t) => {
  const database = await weekly(t);
  await loadCalendarText(t, database.client, TEXT);
  const service = await serviceOn(t, database, {}, undefined, () => NOW);
  const { json } = await get(service, '?from=2026-12-20&to=2027-01-10');
  t.match(json.data, [
    { code: 'XX-1', reason: 'calendar_unknown', days: [{ date: '2026-12-25' }] },
    { code: 'XX-2', reason: 'calendar_unknown' },
    { code: 'XX-3', calendar: null, reason: 'calendar_unknown', days: [], nextExpectedAt: null },
  ]);
});

t.test(
  'no day before the first value of a price is late, nor one of a price with none',
  async (t) => {
    const database = await loadingDatabase(t);
    await describePrices(database.client, 'XX-1', 'XX-2');
    await loadText(t, database.client, 'csv', points('XX-1,2025-12-12,,10,,'));
    await loadCalendarText(t, database.client, TEXT);
    const service = await serviceOn(t, database, {}, undefined, () => NOW);
    const { json } = await get(service, '?from=2025-11-28&to=2025-12-19');
    const states = json.data.map(({ days }: { days: { date: string; status: string }[] }) =>
      days.map(({ date, status }) => `${date} ${status}`),
    );
    const fridays = ['2025-11-28', '2025-12-05', '2025-12-12', '2025-12-19'];
    t.same(states, [
      ['2025-12-12 published', '2025-12-19 late'],
      fridays.map((day) => `${day} due`),
    ]);
  },
);

t.test(
  'the first and the last days that a date can name are answered, and others refused',
  async (t) => {
    const database = await weekly(t);
    await loadCalendarText(t, database.client, TEXT);
    const service = await serviceOn(t, database, {}, undefined, () => NOW);
    const first = await get(service, '?from=0001-01-01&to=0001-01-31');
    t.match(first.json.$metadata, { from: '0001-01-01', count: 3 });
    const before = await get(service, '?from=0000-12-31&to=0001-01-31');
    t.match(before.json, { code: 'validation_failed', errors: [{ pointer: '?from' }] });
    const unprintable = await get(service, '?codes=XX%00');
    t.match(unprintable.json, { errors: [{ pointer: '?codes/0', code: 'invalid_characters' }] });
    const last = await get(service, '?from=9999-12-20');
    t.match(last.json.$metadata, { from: '9999-12-20', to: '9999-12-31', count: 3 });
  },
);

t.test(
  'a holiday that is added three days before moves the instant, and nothing is late',
  async (t) => {
    const database = await weekly(t);
    await loadCalendarText(t, database.client, TEXT);
    await loadText(t, database.client, 'csv', points('XX-1,2025-12-19,,10,,'));
    const clock = Date.parse('2025-12-22T12:00:00Z');
    const service = await serviceOn(t, database, {}, undefined, () => clock);
    const next = async () => (await get(service, '?codes=XX-1')).json.data[0];
    t.match(await next(), { nextExpectedAt: '2025-12-25T16:00:00Z' });
    const added = TEXT.replace('2025-12-26: Box', '2025-12-25: Extra\n      2025-12-26: Box');
    await loadCalendarText(t, database.client, added);
    const after = await next();
    t.equal(after.nextExpectedAt, '2025-12-24T16:00:00Z');
    t.notOk(after.days.some(({ status }: { status: string }) => status === 'late'));
  },
);

t.test(
  'iCalendar has the same instants; a moved day keeps its id and raises SEQUENCE',
  async (t) => {
    const database = await weekly(t);
    const plain = TEXT.replace('2025-12-26: Boxing Day', '2025-01-01: A day');
    await loadCalendarText(t, database.client, plain);
    const service = await serviceOn(t, database, {}, undefined, () => CLOCK);
    const events = async () => {
      const { text, headers } = await get(service, `${RANGE}&format=ics`);
      t.match(headers['content-type'], /^text\/calendar/);
      t.ok(text.split('\r\n').every((line) => Buffer.byteLength(line) <= 75));
      const parsed = new ICAL.Component(ICAL.parse(text));
      return parsed.getAllSubcomponents('vevent').map((each) => {
        const event = new ICAL.Event(each);
        return {
          uid: event.uid,
          at: `${event.startDate.toJSDate().toISOString().slice(0, 19)}Z`,
          sequence: event.sequence,
        };
      });
    };
    const before = await events();
    const { json } = await get(service, RANGE);
    const instants = json.data.flatMap(({ days }: { days: { dueAt: string }[] }) =>
      days.map(({ dueAt }) => dueAt),
    );
    t.strictSame(
      before.map(({ at }) => at),
      instants,
    );
    t.equal(new Set(before.map(({ uid }) => uid)).size, before.length);
    await loadCalendarText(t, database.client, TEXT);
    const after = await events();
    t.strictSame(
      after.map(({ uid }) => uid),
      before.map(({ uid }) => uid),
    );
    const moved = (all: typeof before) => all.find(({ uid }) => uid.startsWith('XX-1.2025-12-26'));
    t.ok(moved(before));
    const friday = (all: typeof before) => all.filter(({ at }) => at.startsWith('2025-12-2'));
    t.ok(
      friday(after).every(
        ({ sequence }, index) => sequence > (friday(before)[index]?.sequence ?? 0),
      ),
    );
  },
);

t.test('CSV has a row for each due day, and one for a price without any', async (t) => {
  const database = await weekly(t);
  await loadCalendarText(t, database.client, TEXT);
  const service = await serviceOn(t, database, {}, undefined, () => CLOCK);
  const { text } = await get(service, '?from=2025-12-25&to=2025-12-25', { accept: 'text/csv' });
  const due = '2025-12-25,2025-12-25T16:00:00Z,due,Boxing Day,2025-12-26';
  const lines = text
    .replace(/2\d{3}-\d\d-\d\dT[\d:]+\.\d+Z/g, '…')
    .trim()
    .split('\r\n');
  t.strictSame(lines, [
    'market,code,name,calendar,date,dueAt,status,holiday,movedFrom,nextExpectedAt,reason,' +
      'lastAssessedAt,latestPublishedAt,lateFrom,lateBy,sample',
    `aluminium,XX-1,Price XX-1,weekly,${due},2025-12-12T16:00:00Z,,2025-12-11,…,` +
      '2025-12-12T17:00:00Z,calendar,false',
    `aluminium,XX-2,Price XX-2,weekly,${due},2025-12-19T16:00:00Z,,2025-12-18,…,` +
      '2025-12-19T17:00:00Z,calendar,false',
    'aluminium,XX-3,Price XX-3,,,,,,,,calendar_unknown,,,,,false',
  ]);
});

t.test('a bad query is refused with each place, and scopes hold', async (t) => {
  const database = await weekly(t);
  const service = await serviceOn(t, database, {}, undefined, () => CLOCK);
  const refused: readonly (readonly [string, string, string])[] = [
    ['?from=2025-02-30', '?from', 'invalid_format'],
    ['?from=yesterday', '?from', 'invalid_format'],
    ['?from=2025-02-02&to=2025-02-01', '?from', 'date_order'],
    ['?to=2025-12-17', '?to', 'date_order'],
    ['?from=2025-01-01&to=2026-01-02', '?to', 'out_of_range'],
    ['?market=tin', '?market/0', 'invalid_format'],
    ['?format=xml', '?format', 'invalid_format'],
    ['?code=XX-1', '?code', 'unknown_field'],
    ['?codes=', '?codes/0', 'invalid_format'],
  ];
  for (const [query, pointer, code] of refused) {
    const { status, json } = await get(service, query);
    t.match(
      { status, errors: json.errors },
      { status: 400, errors: [{ pointer }] },
      `${query} ${code}`,
    );
  }
  t.equal((await get(service, '?from=2025-01-01&to=2026-01-01')).status, 200, '366 days');
  const nickel = await keyFor(database, ['prices:nickel' as Scope]);
  t.equal((await get(service, '?market=aluminium', { 'x-api-key': nickel })).status, 403);
  t.strictSame((await get(service, '', { 'x-api-key': nickel })).json.data, []);
  const unmatched = await get(service, '?codes=XX-1', { 'x-api-key': nickel });
  t.match(unmatched.json, {
    data: [],
    $metadata: { warnings: [{ code: 'unmatched_value', suggestions: [] }] },
  });
  const near = await get(service, '?codes=XX-1&codes=XX-4&codes=remote');
  t.match(near.json.$metadata.warnings, [
    {
      pointer: '?codes/1',
      detail: 'No price of these markets has the code "XX-4"; did you mean XX-1, XX-2, XX-3?',
      suggestions: ['XX-1', 'XX-2', 'XX-3'],
    },
    { pointer: '?codes/2', suggestions: [] },
  ]);
  t.equal((await get(service, '', { accept: 'image/png' })).status, 406);
});

t.test('a calendar token opens the due days alone: in the address or by Basic', async (t) => {
  const database = await weekly(t);
  await loadCalendarText(t, database.client, TEXT);
  const service = await serviceOn(t, database, {}, undefined, () => CLOCK);
  const made = await createKey(database.db, {
    name: 'outlook',
    scopes: ['prices:aluminium'],
    expiresAt: null,
    kind: 'calendar',
  });
  const { key } = made;
  t.match(key, /^cps_cal_cal/);
  const ask = async (url: string, headers: Record<string, string> = {}) => {
    const { statusCode, headers: sent, body } = await service.app.inject({ url, headers });
    return { status: statusCode, body, headers: sent };
  };
  const basic = { authorization: `Basic ${Buffer.from(`me:${key}`).toString('base64')}` };
  t.equal((await ask(`/v3/calendar?format=ics&token=${key}`)).status, 200);
  t.equal((await ask('/v3/calendar', basic)).status, 200);
  t.equal((await ask('/v3/calendar', { 'x-api-key': key })).status, 200);
  for (const url of [
    '/v3/prices/aluminium',
    '/v3/prices',
    '/v3/me',
    '/v3/search?q=x',
    '/v3/changes',
  ]) {
    const refused = await ask(url, { 'x-api-key': key });
    t.equal(refused.status, 403, url);
    t.match(refused.body, /calendar token/);
    t.equal((await ask(`${url}${url.includes('?') ? '&' : '?'}token=${key}`)).status, 401, url);
  }
  const wrong = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
  t.equal((await ask(`/v3/calendar?token=${wrong}`)).status, 401);
  t.equal((await ask(`/v3/calendar?token=${service.key}`)).status, 401, 'an API key is not read');
  const live = { authorization: `Basic ${Buffer.from(`me:${service.key}`).toString('base64')}` };
  t.equal((await ask('/v3/calendar', live)).status, 401, 'without BASIC_AUTH');
  t.equal((await ask(`/v3/calendar?token=${key}`, { 'x-api-key': key })).status, 400);
  t.match((await ask('/v3/calendar')).headers['www-authenticate'], /Basic realm/);
  const rotation = { graceMs: 60_000, expiresAt: null };
  const rotated = await rotateKey(database.db, made.id, rotation);
  t.match(rotated.key, /^cps_cal_cal/, 'its successor is a calendar token, too');
  t.equal((await ask(`/v3/calendar?token=${rotated.key}`)).status, 200);
  await revokeKey(database.db, rotated.id, 'left the desk');
  t.equal((await ask(`/v3/calendar?token=${rotated.key}`)).status, 401);
});

t.test('a calendar token is masked wherever an address is logged or repeated', async (t) => {
  const database = await weekly(t);
  const made = {
    name: 'outlook',
    scopes: ['prices:*'],
    expiresAt: null,
    kind: 'calendar',
  } as const;
  const { key } = await createKey(database.db, made);
  const lines: string[] = [];
  const app = await buildApp({
    config: testConfig(),
    client: database.client,
    logger: loggerOf('debug', { write: (line: string) => void lines.push(line) }),
  });
  t.teardown(() => app.close());
  const secret = key.slice(-38);
  for (const token of [key, key.replaceAll('_', '%5F')]) {
    for (const url of [`/v3/calendar?token=${token}`, `/v3/calendar?token=${token}&from=x`]) {
      const { body } = await app.inject({ url });
      t.notMatch(body, secret);
    }
    const { body } = await app.inject({ url: `/v3/prices?token=${token}` });
    t.notMatch(body, secret);
  }
  t.ok(lines.length >= 6);
  t.notMatch(lines.join(''), secret);
});
