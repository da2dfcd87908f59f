import t from 'tap';
import { DISCONTINUED, SUSPENDED, WITHOUT_VALUES } from '../../seeds/awkward.ts';
import { LAST_DAY } from '../../seeds/calendar.ts';
import { sampleCalendars } from '../../seeds/calendars.ts';
import { sampleMarkets } from '../../seeds/sample.ts';
import { seriesOf } from '../../seeds/series.ts';
import { Calendar } from '../../src/calendar/calendar.ts';
import { seed } from '../../src/db/seed/seed.ts';
import { undoSamples } from '../../src/ingest/ledger/samples.ts';
import { dayOf, dayText } from '../../src/std/days.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { testDatabase } from '../support/database/database.ts';

const { holidays, calendars, prices } = await sampleCalendars();
const samples = (await sampleMarkets()).flatMap((market) => market.prices);

t.test('every sample price that is still assessed follows a calendar', async (t) => {
  const assessed = samples.map(({ code }) => code).filter((code) => !(code in DISCONTINUED));
  t.strictSame([...prices.keys()].sort(), assessed.sort());
  for (const slug of prices.values()) t.ok(calendars.has(slug ?? ''), String(slug));
});

t.test(
  'sample values are on the due days, without one late and one that was not due',
  async (t) => {
    for (const price of samples) {
      const definition = calendars.get(prices.get(price.code) ?? '');
      if (definition === undefined || WITHOUT_VALUES.has(price.code)) continue;
      const list =
        definition.holidays === null ? null : (holidays.get(definition.holidays) ?? null);
      const calendar = new Calendar(definition, list);
      const points = seriesOf(price);
      const [first, last] = SUSPENDED[price.code] ?? ['9999', '0000'];
      const start = price.launched > '2021-01-01' ? price.launched : '2021-01-01';
      const due = calendar
        .dueDays(dayOf(start), dayOf(LAST_DAY))
        .flatMap((each) => (each.due === null ? [] : [dayText(each.due)]))
        .filter((day) => day < first || day > last);
      t.strictSame(
        due,
        points.map(({ date }) => date),
        price.code,
      );
      // Each value is published before it is due.
      const late = points.filter(
        ({ date, publishedAt }) => publishedAt > calendar.instantOf(dayOf(date)),
      );
      t.strictSame(late, [], price.code);
    }
  },
);

t.test('seeds write the calendars once, and undo --samples takes them back', async (t) => {
  const { client, pool } = await testDatabase(t, { seeded: true });
  const count = async () =>
    (await pool.query('select count(*)::int from price_calendar')).rows[0].count;
  t.equal(await count(), prices.size);
  t.match(await seed(client), { sample: { prices: 0 } });
  const broken = async () =>
    (await verify(client, RULES, () => {})).rules.filter((each) => each.count > 0);
  t.strictSame(await broken(), []);
  await undoSamples(client, { actor: 'tester', reason: 'real prices follow' });
  t.equal(await count(), 0);
  t.strictSame(await broken(), []);
});
