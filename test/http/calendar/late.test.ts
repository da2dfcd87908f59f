import t from 'tap';
import { buildApp } from '../../../src/app.ts';
import { metricsOf } from '../../../src/metrics/metrics.ts';
import { CALENDARS, loadCalendarText } from '../../ingest/calendar/support.ts';
import { describePrices, loadingDatabase, loadText, points } from '../../ingest/support/loading.ts';
import { testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { testConfig } from '../../support/http/test-config.ts';
import { prices as command } from '../../support/process/programs.ts';

const YEAR = new Date().getUTCFullYear();
const TEXT = CALENDARS.replace('from: 2025-01-01', `from: ${YEAR - 3}-01-01`).replace(
  'until: 2026-12-31',
  `until: ${YEAR + 1}-12-31`,
);

t.test(
  'late prices are counted by market and way of judging, within the scrape after it',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await describePrices(client, 'XX-1', 'XX-2', 'XX-3');
    await loadText(t, client, 'csv', points('XX-1,2025-12-12,,10,,', 'XX-3,2025-12-12,,10,,'));
    await loadCalendarText(t, client, CALENDARS.replace('from: 2025', 'from: 2024'));
    await loadText(t, client, 'csv', points('XX-9,2025-12-12,,10,,'));
    let nowMs = Date.parse('2025-12-19T17:00:00Z');
    const metrics = metricsOf();
    const app = await buildApp({ config: testConfig(), client, metrics, now: () => nowMs });
    t.teardown(() => app.close());
    const text = () => metrics.registry.metrics();
    const late = async () =>
      [...(await text()).matchAll(/^prices_late\{market="aluminium",by="(\w+)"\} (\d+)$/gm)].map(
        ([, by, count]) => `${by} ${count}`,
      );
    t.strictSame(await late(), ['calendar 0', 'frequency 0']);
    nowMs += 1;
    t.strictSame(await late(), ['calendar 1', 'frequency 0']);
    nowMs = Date.parse('2026-01-01T12:00:00Z');
    t.strictSame(await late(), ['calendar 1', 'frequency 1']);
    await loadText(t, client, 'csv', points('XX-1,2025-12-26,,10,,'));
    t.match(await late(), ['calendar 0', 'frequency 1']);
    const found = await text();
    t.match(found, /prices_loads_total\{format="csv",outcome="refused"\} 1/);
    t.match(found, /prices_loads_total\{format="calendar",outcome="applied"\} 1/);
    const seconds = Date.parse('2025-12-26T00:00:00Z') / 1000;
    t.match(
      found,
      `prices_latest_observation_timestamp_seconds{market="aluminium",frequency="W"} ${seconds}`,
    );
  },
);

t.test('sample prices are never counted as late, though their calendar says so', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { client, url: DATABASE_URL } = database;
  const clock = () => Date.parse('2026-07-10T00:00:00Z');
  const service = await serviceOn(t, database, {}, undefined, clock);
  const url = '/v3/calendar?codes=CP-NI-0001&from=2026-06-24&to=2026-07-03';
  const [price] = (await service.request({ method: 'GET', url })).json.data;
  const days = new Map(price.days.map((each: { date: string }) => [each.date, each]));
  t.match(days.get('2026-06-30'), { status: 'published' });
  t.match(days.get('2026-07-01'), { status: 'late' });
  const metrics = metricsOf();
  const app = await buildApp({ config: testConfig(), client, metrics });
  t.teardown(() => app.close());
  t.notMatch(await metrics.registry.metrics(), /^prices_late\{.*\} [1-9]/m);
  t.match(await command(t, { DATABASE_URL }, 'late'), { code: 0, stdout: /No price is late/ });
  t.match(await command(t, { DATABASE_URL }, 'late', '--samples'), { code: 1 });
});

t.test(
  'prices late lists the late prices, and ends with exit code 1 if there is one',
  async (t) => {
    const { client, url: DATABASE_URL } = await loadingDatabase(t);
    await describePrices(client, 'XX-1', 'XX-2');
    t.match(await command(t, { DATABASE_URL }, 'late'), { code: 0 });
    await loadText(t, client, 'csv', points(`XX-1,${YEAR - 2}-03-01,,10,,`));
    await loadCalendarText(t, client, TEXT);
    const late = await command(t, { DATABASE_URL }, 'late');
    t.match(late, { code: 1, stdout: /aluminium +XX-1 .* weekly/ });
    const json = await command(t, { DATABASE_URL }, 'late', '--json');
    t.match(JSON.parse(json.stdout), { late: [{ code: 'XX-1', late: { by: 'calendar' } }] });
    t.match(await command(t, { DATABASE_URL }, 'late', '--market', 'nickel'), { code: 0 });
    t.match(await command(t, { DATABASE_URL }, 'late', '--market', 'tin'), { code: 2 });
  },
);

t.test('health is degraded when the newest rate is too old for a price of today', async (t) => {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'XX-1');
  await loadText(t, database.client, 'csv', points('XX-1,2025-12-12,,10,,'));
  const rates = 'Date,USD,\n2025-12-12,1.1052,\n';
  t.equal((await loadText(t, database.client, 'ecb', rates)).status, 'applied');
  let nowMs = Date.parse('2025-12-19T23:59:59Z');
  const service = await serviceOn(t, database, {}, undefined, () => nowMs);
  const health = async () => (await service.request({ method: 'GET', url: '/health' })).json;
  t.match(await health(), { status: 'ok', checks: { rates: 'ok' } });
  nowMs += 1_000;
  const stale = await health();
  t.match(stale, { status: 'degraded', checks: { rates: 'stale' } });
  t.match(stale.reasons, [/^The newest exchange rate of ECB is of 2025-12-12, too old /]);
});
