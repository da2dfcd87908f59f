import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { commit } from '../support/prices/sample-writes.ts';
import { differenceOf } from './recompute.ts';
import { calculate, resultOf, violationsOf } from './support.ts';

const CODE = 'CP-CU-0001';
const MONTH = '2026-05';

const database = await testDatabase(t, { seeded: true });
const service = await serviceOn(t, database);

const average = (more: object = {}) =>
  calculate(service, { average: CODE, period: MONTH, options: { decimalsAsText: true }, ...more });

/** The days of the sessions of a result. */
const daysOf = ({ inputs }: { inputs: { price: { sessions: { date: string }[] } } }): string[] =>
  inputs.price.sessions.map(({ date }) => date);

const codesOf = ({ reasons }: { reasons: { code: string }[] }): string[] =>
  reasons.map(({ code }) => code);

/** Removes the sessions of some days as one commit. */
const withdraw = (from: string, to: string) =>
  commit(database.pool, (client) =>
    client.query(
      `delete from series where date between $2 and $3
        and price_id = (select id from price where code = $1)`,
      [CODE, from, to],
    ),
  );

t.test(
  'a period whose due sessions are all there is final, and closed days are named',
  async (t) => {
    const result = resultOf(await average());
    t.match(result, { status: 'final', reasons: [] });
    const { notUsed, observations } = result.inputs.price;
    t.same(
      notUsed.map(({ why }: { why: string }) => why).filter((why: string) => why !== 'closed'),
      [],
    );
    t.ok(notUsed.length > 0 && notUsed.every(({ name }: { name: string }) => name.length > 2));
    t.equal(daysOf(result).length, observations);
  },
);

t.test('a missing session is refused, skipped, or stands for by its neighbour', async (t) => {
  const before = resultOf(await average());
  const days = daysOf(before);
  const [previous = '', gone = '', next = ''] = days.slice(4, 7);
  await withdraw(gone, gone);
  const refused = await average();
  t.same(violationsOf(refused), ['/missing sessions_missing']);
  t.match(refused.json.errors[0].detail, `No session on ${gone}, on which the price was due`);
  const skipped = resultOf(await average({ missing: 'skip' }));
  t.match(skipped, { status: 'final' });
  t.ok(
    skipped.inputs.price.notUsed.some(
      (each: { date: string; why: string }) => each.date === gone && each.why === 'missing',
    ),
  );
  t.equal(skipped.inputs.price.observations, days.length - 1);
  for (const [missing, date] of [
    ['previous', previous],
    ['next', next],
  ] as const) {
    const filled = resultOf(await average({ missing }));
    t.equal(filled.inputs.price.observations, days.length, 'each counts');
    const { sessions } = filled.inputs.price;
    t.match(sessions[5], { date, substituteFor: gone }, missing);
    t.equal(differenceOf(filled), null);
  }
  const far = await average({ missing: 'previous', maxDays: 31 });
  t.equal(far.status, 200);
  const narrow = await calculate(service, {
    inputs: { x: { code: CODE, period: 'S', missing: 'next', maxDays: 1 } },
    anchor: '2026-06-24',
  });
  t.same(violationsOf(narrow), ['/inputs/x/missing unknown_field']);
  const needless = await average({ maxDays: 3 });
  t.same(violationsOf(needless), ['/maxDays unknown_field']);
});

t.test('a month is provisional until its last due session is there, then final', async (t) => {
  const { rows } = await database.pool.query<{ day: string }>(
    `select s.date::text as day from series as s join price as p on p.id = s.price_id
      where p.code = $1 and s.date between '2026-06-01' and '2026-06-12' order by 1`,
    [CODE],
  );
  const days = rows.map(({ day }) => day);
  const last = days.at(-1) ?? '';
  await withdraw(last, '2026-12-31');
  const june = { period: `2026-06-01/${last}`, missing: 'skip' };
  const open = resultOf(await average(june));
  t.match(open, { status: 'provisional' });
  t.same(codesOf(open), ['sessions_not_published']);
  t.match(open.reasons[0].detail, `Sessions of ${last} are due`);
  const over = resultOf(await average({ period: `2026-06-01/${days.at(-2)}`, missing: 'skip' }));
  t.match(over, { status: 'final', reasons: [] });
  const beyond = resultOf(await average({ period: '2150' }));
  t.same(codesOf(beyond).at(-1), 'calendar_unknown');
});
