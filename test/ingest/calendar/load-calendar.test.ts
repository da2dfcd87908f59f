import fc from 'fast-check';
import t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import { contentHash } from '../../../src/db/content-hash.ts';
import { readCalendars } from '../../../src/db/reference/calendars.ts';
import { showBatch } from '../../../src/ingest/ledger/history.ts';
import { RULES, verify } from '../../../src/verify/verify.ts';
import { exported, imported } from '../../archive/support.ts';
import { prices as command } from '../../support/process/programs.ts';
import { conflictsOf, undoBatch } from '../ledger/undo-support.ts';
import { describePrices, fileOf, loadingDatabase, stateOf } from '../support/loading.ts';
import { CALENDARS, loadCalendarText } from './support.ts';

const MOVED = CALENDARS.replace(
  '      2026-12-25',
  '      2026-06-19: A funeral\n      2026-12-25',
);

/** The broken rules of a database. */
const broken = async (client: Client): Promise<string[]> =>
  (await verify(client, RULES, () => {})).rules
    .filter(({ count }) => count > 0)
    .map(({ rule, rows }) => `${rule} ${JSON.stringify(rows)}`);

const hashOf = async (client: Client): Promise<string> => (await contentHash(client)).hash;

t.test(
  'a calendar file is loaded in one revision, previewed, and found in the ledger',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'XX-1', 'XX-2', 'XX-3');
    const before = await stateOf(pool);
    const seen: unknown[] = [];
    const dry = await loadCalendarText(t, client, CALENDARS, {
      dryRun: true,
      onPreview: (preview) => void seen.push(preview.changes),
    });
    t.match(dry, { status: 'previewed', batch: null, counts: { rows: 4, inserted: 4 } });
    t.match(seen, [
      {
        total: 4,
        shown: [
          { kind: 'holidays', name: 'london', before: null },
          { kind: 'calendar', name: 'weekly', before: null },
          { kind: 'price', name: 'XX-1', before: null, after: 'weekly' },
          { kind: 'price', name: 'xx-2', before: null, after: 'weekly' },
        ],
      },
    ]);
    t.equal(await stateOf(pool), before, 'a dry run writes nothing');
    const loaded = await loadCalendarText(t, client, CALENDARS, { reason: 'a first calendar' });
    t.match(loaded, { status: 'applied', errors: [], counts: { inserted: 4, unchanged: 0 } });
    t.match(await loadCalendarText(t, client, CALENDARS), {
      status: 'already-loaded',
      batch: loaded.batch,
    });
    const changes: unknown[] = [];
    await showBatch(client, loaded.batch ?? 0, async (batch, all) => {
      t.match(batch, { format: 'calendar', reason: 'a first calendar', actor: 'tester' });
      for await (const { operation, of, code } of all) changes.push([operation, of, code]);
    });
    t.strictSame(changes, [
      ['calendar-added', 'calendar', 'weekly'],
      ['calendar-added', 'holidays', 'london'],
      ['calendar-added', 'price', 'XX-1'],
      ['calendar-added', 'price', 'XX-2'],
    ]);
    t.strictSame(await broken(client), []);
  },
);

t.test('what a file does not name stays, and an earlier file takes a later one back', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'XX-1', 'XX-2');
  await loadCalendarText(t, client, CALENDARS);
  const first = await hashOf(client);
  const more = await loadCalendarText(t, client, 'prices:\n  XX-1: none\n');
  t.match(more.counts, { rows: 1, withdrawn: 1 });
  const rows = await readCalendars(client.db, null);
  t.same([rows.lists.length, rows.calendars.length, rows.followers.length], [1, 1, 1]);
  t.match(await loadCalendarText(t, client, CALENDARS), {
    status: 'applied',
    counts: { inserted: 1, unchanged: 3 },
  });
  t.equal(await hashOf(client), first);
  t.strictSame(await broken(client), []);
});

t.test('each load can be undone, and the undo too, in any state of the others', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'XX-1', 'XX-2');
  const empty = await hashOf(client);
  const first = await loadCalendarText(t, client, CALENDARS);
  const loaded = await hashOf(client);
  const second = await loadCalendarText(
    t,
    client,
    `${MOVED}  XX-1: none\n`.replace('  XX-1: weekly\n', ''),
  );
  const changed = await hashOf(client);
  t.strictSame(await conflictsOf(client, first.batch), [second.batch]);
  const undone = await undoBatch(client, second.batch);
  t.equal(await hashOf(client), loaded);
  t.match(undone.preview, {
    calendarsRemoved: { total: 0 },
    calendarsAsBefore: { total: 1, shown: [{ kind: 'holidays', name: 'london' }] },
    calendarsRestored: { total: 1, shown: [{ kind: 'price', name: 'XX-1' }] },
  });
  const again = await undoBatch(client, undone.batch);
  t.equal(await hashOf(client), changed);
  await undoBatch(client, again.batch);
  await undoBatch(client, first.batch);
  t.equal(await hashOf(client), empty);
  const { followers, calendars, lists } = await readCalendars(client.db, null);
  t.same([followers, calendars, lists], [[], [], []]);
  t.strictSame(await broken(client), []);
});

t.test('a load of prices cannot be undone while they follow a calendar', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'XX-1', 'XX-2');
  const { rows } = await client.pool.query('select max(id) as id from load_batch');
  const { batch } = await loadCalendarText(t, client, CALENDARS);
  t.strictSame(await conflictsOf(client, rows[0].id), [batch]);
  await undoBatch(client, batch);
  await undoBatch(client, rows[0].id);
  t.strictSame(await broken(client), []);
});

t.test('calendars are read at every past revision as they were', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'XX-1', 'XX-2');
  await loadCalendarText(t, client, CALENDARS);
  await loadCalendarText(t, client, MOVED);
  const { rows } = await pool.query(
    `select concat_ws('.', number, commit_id) as revision from revision
      order by number desc limit 3`,
  );
  const days = async (revision: string) =>
    (await readCalendars(client.db, revision)).lists.flatMap(({ days }) => days.map((d) => d.date));
  t.strictSame(await days(rows[0].revision), ['2026-06-19', '2026-12-25']);
  t.strictSame(await days(rows[1].revision), ['2026-12-25']);
  t.strictSame(await days(rows[2].revision), []);
});

t.test(
  'an archive holds calendars with their past, and of some markets only their prices',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'XX-1', 'XX-2');
    await loadCalendarText(t, client, CALENDARS);
    await loadCalendarText(t, client, MOVED);
    const copy = await imported(t, await exported(t, client));
    t.strictSame(await contentHash(copy.client), await contentHash(client));
    const history = 'select * from holiday_list_history';
    t.same((await copy.pool.query(history)).rows, (await pool.query(history)).rows);
    t.strictSame(await broken(copy.client), []);
    const other = await imported(t, await exported(t, client, ['nickel']));
    t.equal((await readCalendars(other.client.db, null)).followers.length, 0);
    t.strictSame(await broken(other.client), []);
  },
);

t.test('every fault is refused with its line and column, and changes nothing', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'XX-1', 'XX-2');
  const faults: readonly (readonly [string, string, object])[] = [
    [
      '    zone: Europe/London',
      '    zone: Europe/Lundon',
      { line: 12, position: 5, code: 'invalid_calendar' },
    ],
    [
      'holidays: london',
      'holidays: londn',
      { line: 13, position: 5, code: 'unknown_holidays', message: /did you mean "london"/ },
    ],
    [
      'XX-1: weekly',
      'XX-1: weekley',
      { line: 16, position: 3, code: 'unknown_calendar', value: 'weekley' },
    ],
    [
      'XX-1: weekly',
      'XX-7: weekly',
      { line: 16, position: 3, code: 'unknown_code', value: 'XX-7' },
    ],
    ['xx-2: weekly', 'xx-1: weekly', { line: 17, code: 'duplicate' }],
    [
      '  XX-1',
      '  XX-1: weekly\n  XX-1',
      { line: 17, position: 3, code: 'invalid_yaml', message: /twice/ },
    ],
    ['at: 16:00', 'at: [16:00', { code: 'invalid_yaml' }],
    ['source: a test', 'source: &a a test', { line: 3, code: 'invalid_yaml', message: /anchor/ }],
  ];
  for (const [from, to, expected] of faults) {
    const before = await pool.query('select count(*) from revision');
    const report = await loadCalendarText(t, client, CALENDARS.replace(from, to));
    t.match(report, { status: 'refused', errors: [expected] }, to);
    // The parser goes on after a bracket that is not closed.
    if (!to.endsWith('[16:00')) t.equal(report.errorsTotal, 1, to);
    t.same((await pool.query('select count(*) from revision')).rows, before.rows);
  }
  t.match(await loadCalendarText(t, client, ''), {
    status: 'refused',
    errors: [{ code: 'empty_file' }],
  });
  t.match(await loadCalendarText(t, client, Buffer.from([0xff, 0xfe])), {
    errors: [{ code: 'invalid_yaml', line: 1, position: 1 }],
  });
  const large = `prices:\n${'# a comment\n'.repeat(200_000)}`;
  t.match(await loadCalendarText(t, client, large), { errors: [{ message: /larger than/ }] });
});

t.test('1,000 files with random faults are 1,000 clear refusals, and change nothing', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'XX-1', 'XX-2');
  await loadCalendarText(t, client, CALENDARS);
  const content = async () => (await contentHash(client)).hash;
  const before = await content();
  const revisions = async () => (await pool.query('select max(number) from revision')).rows[0].max;
  const newest = await revisions();
  const lines = CALENDARS.split('\n');
  // The members of these lines take any text.
  const checked = lines.flatMap((line, at) => (/source|Christmas|^$/.test(line) ? [] : [at]));
  // Words that are legal nowhere in a calendar file.
  const bad = ['&a', '2026-13-01', '%', '[', '{', '"', '*x', '!!int', '25:61', '\t: ?'];
  const cases = fc.sample(
    fc.tuple(fc.constantFrom(...checked), fc.nat({ max: 4 }), fc.constantFrom(...bad)),
    1000,
  );
  for (const [at, place, word] of cases) {
    const words = lines[at]?.split(/(?<=\s)(?=\S)/) ?? [];
    const index = place % words.length;
    // A word that stands there already, as the brace of a rule, is followed by another.
    const space = /^\s+$/.test(words[index] ?? '') ? words[index] : '';
    const text = lines
      .with(
        at,
        words.with(index, `${space}${word}${words[index]?.trim() === word ? word : ''} `).join(''),
      )
      .join('\n');
    const report = await loadCalendarText(t, client, text, { dryRun: true });
    const [error] = report.errors;
    const isClear =
      report.status === 'refused' &&
      typeof error?.line === 'number' &&
      typeof error.position === 'number' &&
      error.message.length > 10;
    if (!isClear) t.fail(`${report.status} ${JSON.stringify(error)}: ${text}`);
  }
  t.equal(await content(), before);
  t.equal(await revisions(), newest);
});

t.test('load calendar prints the changes, and faults as file:line:column', async (t) => {
  const { client, url: DATABASE_URL } = await loadingDatabase(t);
  const run = (...args: string[]) => command(t, { DATABASE_URL }, 'load', 'calendar', ...args);
  await describePrices(client, 'XX-1', 'XX-2');
  const file = await fileOf(t, CALENDARS, 'calendars.yaml');
  const dry = await run(file, '--dry-run');
  t.match(dry, { code: 0, stdout: /new price XX-1: weekly[\s\S]*A dry run/ });
  t.match(await run(file), { code: 0, stdout: /new 4 · changed 0/ });
  t.match(await run(file), { code: 0, stdout: /loaded before/ });
  const moved = await fileOf(t, MOVED, 'calendars.yaml');
  t.match(await run(moved), {
    stdout: /changed holidays london: \+ 2026-06-19 A funeral/,
  });
  const bad = await fileOf(t, CALENDARS.replace('16:00', '25:00'), 'calendars.yaml');
  const refused = await run(bad, '--json');
  t.equal(refused.code, 3);
  t.match(JSON.parse(refused.stdout), { status: 'refused', errors: [{ line: 11, position: 5 }] });
  const shown = await run(bad);
  t.match(shown.stderr, /calendars\.yaml:11:5: calendars\.weekly\.at: Must be a time/);
});
