import { join } from 'node:path';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { blocksOf, ROOT } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { python } from '../support/process/python.ts';

const MARKETS = ['nickel', 'cobalt'];

/** The mid of each point of the markets, as text, by code and date. */
async function pointsOf(service: Service): Promise<Record<string, string>> {
  const points: Record<string, string> = {};
  for (const slug of MARKETS) {
    const answer = await service.app.inject({
      url: `/v3/prices/${slug}?includeSeries=true&decimalsAsText=true`,
      headers: { 'x-api-key': service.key },
    });
    for (const { code, series } of answer.json().data) {
      for (const { date, mid } of series) points[`${code} ${date}`] = mid;
    }
  }
  return points;
}

t.test('the dlt resource keeps a table equal to the service, run by run', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await serviceOn(t, database);
  const [block] = blocksOf('docs/recipes/dlt.md').filter(({ tag }) => tag === 'dlt');
  const env = {
    PYTHONPATH: `${ROOT}clients/python:${ROOT}test/support/docs`,
    COMMODITY_PRICES_URL: await addressOf(service.app),
    COMMODITY_PRICES_KEY: service.key,
    STATE: join(t.testdir({}), 'state.json'),
  };
  const run = async (): Promise<{ rows: number; table: Record<string, string> }> => {
    const { stdout, stderr } = await python(block?.text ?? '', env);
    t.equal(stderr, '');
    return JSON.parse(stdout);
  };
  const first = await run();
  t.same(first.table, await pointsOf(service));
  t.ok(first.rows > 1_000, `${first.rows} rows`);
  t.equal((await run()).rows, 0, 'nothing is loaded twice');

  for (const change of ['corrections', 'withdrawals', 'a load'] as const) {
    await CHANGES[change]?.(database, t);
  }
  const second = await run();
  t.same(second.table, await pointsOf(service));
  t.ok(second.rows > 0 && second.rows < first.rows, `${second.rows} rows`);
});
