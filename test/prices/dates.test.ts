import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { administer, testDatabase } from '../support/database/database.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';

const run = promisify(execFile);
const CHILD = fileURLToPath(new URL('./single-request.ts', import.meta.url));

/** Days at which calendars, epochs and clocks turn, each with a publication just as awkward. */
const EDGES: readonly (readonly [date: string, published: string])[] = [
  ['1800-01-01', '1800-01-01T00:00:00.000001Z'],
  ['1900-02-28', '1900-02-28T23:59:59.999999Z'],
  ['1900-03-01', '1900-03-01T00:00:00Z'],
  ['1969-12-31', '1969-12-31T23:59:59.999999Z'],
  ['1970-01-01', '1970-01-01T00:00:00Z'],
  ['1999-12-31', '1999-12-31T23:59:59.5Z'],
  ['2000-01-01', '2000-01-01T00:00:00Z'],
  ['2000-02-29', '2000-02-29T12:00:00.25Z'],
  ['2024-02-29', '2024-02-29T16:00:00Z'],
  ['2024-03-10', '2024-03-10T02:30:00Z'],
  ['2024-03-31', '2024-03-31T01:30:00Z'],
  ['2024-11-03', '2024-11-03T05:59:59.000009Z'],
];

const ZONES = ['UTC', 'America/New_York', 'Pacific/Kiritimati', 'Asia/Kolkata'];

async function edges(test: Pick<typeof t, 'teardown'>) {
  const database = await testDatabase(test);
  await writeMinimalData(database.pool);
  const points = EDGES.map(([date, at]) =>
    insertOf('series', pointRow({ date: `'${date}'`, published_at: `'${at}'` })),
  );
  await inRevision(database.pool, ...points);
  return database;
}

t.test('each day is its own bound, and its neighbours are not', async (t) => {
  const { post } = await serviceOn(t, await edges(t));
  const days = async (dateFrom?: string, dateTo?: string) => {
    const filters = { codes: ['T-1'], ...(dateFrom && { dateFrom }), ...(dateTo && { dateTo }) };
    const { json } = await post('nickel', { filters, options: { includeSeries: true } });
    return json.data[0].series.map((each: { date: string }) => each.date);
  };
  const all = EDGES.map(([date]) => date);
  for (const [index, date] of all.entries()) {
    t.same(await days(date, date), [date], date);
    t.same(await days(date), all.slice(index), `from ${date}`);
    t.same(await days(undefined, date), all.slice(0, index + 1), `to ${date}`);
  }
  t.same(await days('1800-01-02', '1900-02-27'), []);
  t.same(await days('1900-02-28', '1900-03-01'), ['1900-02-28', '1900-03-01']);
});

t.test(
  'days and instants are the same wherever the process and the database think they are',
  async (t) => {
    const database = await edges(t);
    const { key } = await serviceOn(t, database);
    const name = new URL(database.url).pathname.slice(1);
    await administer(
      process.env['TEST_DATABASE_URL'] as string,
      `alter database "${name}" set timezone to 'Asia/Kathmandu'`,
      `alter database "${name}" set datestyle to 'SQL, DMY'`,
      `alter database "${name}" set intervalstyle to 'sql_standard'`,
      `alter database "${name}" set extra_float_digits to 0`,
    );
    const body = JSON.stringify({
      filters: { codes: ['T-1'], dateFrom: '1800-01-01', dateTo: '2024-11-03' },
      options: { includeSeries: true },
    });
    const answers = await Promise.all(
      ZONES.map(async (zone) => {
        const args = [CHILD, database.url, key, 'nickel', body];
        const { stdout } = await run(process.execPath, args, { env: { ...process.env, TZ: zone } });
        return JSON.parse(stdout);
      }),
    );
    t.equal(
      new Set(answers.map((each) => each.clock)).size,
      4,
      'the processes differ in their zone',
    );
    t.equal(new Set(answers.map((each) => each.body)).size, 1, 'and not in their answers');
    const [record] = JSON.parse(answers[0].body).data;
    t.same(
      record.series.map((each: Record<string, string>) => [each['date'], each['publishedAt']]),
      EDGES,
    );
    t.same([record.lastAssessedAt, record.latestPublishedAt], EDGES.at(-1));
    const { asOf } = JSON.parse(answers[0].body).$metadata;
    t.ok(Math.abs(Date.parse(asOf) - Date.now()) < 3_600_000, 'nor is asOf shifted');
  },
);
