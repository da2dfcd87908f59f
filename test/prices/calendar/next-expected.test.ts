import t from 'tap';
import { CALENDARS, loadCalendarText } from '../../ingest/calendar/support.ts';
import { describePrices, loadingDatabase, loadText, points } from '../../ingest/support/loading.ts';
import { testDatabase } from '../../support/database/database.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';

const ALL = { options: { includeSeries: false } };

/** `nextExpectedAt` of each price of aluminium. */
async function expectedOf(
  service: Service,
  options: object = {},
): Promise<Record<string, unknown>> {
  const { json } = await service.post('aluminium', { options });
  return Object.fromEntries(
    json.data.map((each: { code: string; nextExpectedAt: unknown }) => [
      each.code,
      each.nextExpectedAt,
    ]),
  );
}

t.test('nextExpectedAt is the first due instant after the last assessment', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'XX-1', 'XX-2', 'XX-3', 'XX-4');
  await loadText(t, client, 'csv', points('XX-1,2026-03-20,,10,,', 'XX-3,2026-03-20,,10,,'));
  const service = await serviceOn(t, database);
  t.same(await expectedOf(service), { 'XX-1': null, 'XX-2': null, 'XX-3': null, 'XX-4': null });
  const text = `${CALENDARS}  XX-4: weekly\n`;
  const { revision } = await loadCalendarText(t, client, text);
  await inRevision(
    pool,
    "update price set assessment_launched_at = '2026-03-27' where code = 'XX-4'",
  );
  const first = {
    'XX-1': '2026-03-27T16:00:00Z',
    // Without points: from its launch on, where that is known.
    'XX-2': null,
    'XX-3': null,
    'XX-4': '2026-03-27T16:00:00Z',
  };
  t.same(await expectedOf(service), first);
  await loadText(t, client, 'csv', points('XX-1,2026-03-27,,10,,'));
  // London has summer time from 2026-03-29 on, and 3 April is no holiday of this list.
  t.match(await expectedOf(service), { 'XX-1': '2026-04-03T15:00:00Z' });
  const added = text.replace('2026-12-25: Chr', '2026-04-03: Good Friday\n      2026-12-25: Chr');
  await loadCalendarText(t, client, added);
  t.match(await expectedOf(service), { 'XX-1': '2026-04-02T15:00:00Z' });
  t.match(await expectedOf(service, { revision }), { 'XX-1': '2026-03-27T16:00:00Z' });
  // Beyond the last day that the list knows, nothing is.
  const ended = text.replace('until: 2026-12-31', 'until: 2026-04-02');
  await loadCalendarText(t, client, ended.replace(/ {4}days:\n.*\n/, ''));
  t.match(await expectedOf(service), { 'XX-1': null });
});

t.test('every format has nextExpectedAt, and rows have it in one column', async (t) => {
  const service = await serviceOn(t, await testDatabase(t, { seeded: true }));
  const { json } = await service.post('nickel', ALL);
  const expected = new Map(
    json.data.map((each: { code: string; nextExpectedAt: string }) => [
      each.code,
      each.nextExpectedAt,
    ]),
  );
  t.ok([...expected.values()].every((each) => /^2026-\d\d-\d\dT\d\d:\d\d:00Z$/.test(String(each))));
  const csv = await service.request({
    method: 'POST',
    url: '/v3/prices/nickel',
    payload: ALL,
    headers: { accept: 'text/csv' },
  });
  const [header = '', ...rows] = csv.text.trim().split('\r\n');
  const names = header.split(',');
  // From the end, because texts before it have commas.
  const at = names.indexOf('nextExpectedAt') - names.length;
  t.ok(at < 0);
  for (const row of rows) t.equal(row.split(',').at(at), expected.get(row.split(',')[0]));
  const found = await service.request({ method: 'GET', url: '/v3/search?q=nickel&limit=5' });
  for (const { code, market, nextExpectedAt } of found.json.data) {
    if (market === 'nickel') t.equal(nextExpectedAt, expected.get(code));
  }
});

t.test('a database without calendars answers with one null member more', async (t) => {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'XX-1');
  const service = await serviceOn(t, database);
  const { json } = await service.post('aluminium', {});
  t.equal(json.data[0].nextExpectedAt, null);
});
