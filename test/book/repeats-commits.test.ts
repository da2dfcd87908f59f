import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { keyFor } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { compareOne } from './compare.ts';
import { answerOf, type BookRequest, fill, twinsOn } from './support.ts';

const database = await testDatabase(t, { seeded: true });
const twins = await twinsOn(t, database);
await fill(twins);

const NATIVE: BookRequest = {
  slug: 'nickel',
  filters: {},
  options: { includeSeries: true },
  accept: 'application/json',
};
const CONVERTED: BookRequest = { ...NATIVE, options: { includeSeries: true, currency: 'EUR' } };

/** Commits of each kind that an answer depends on. */
const COMMITS: Readonly<Record<string, string>> = {
  rates: "update fx_rate set rate = trim_scale(rate + 0.0001) where source = 'SAMPLE'",
  'reference data': "update currency set symbol = symbol || '*'",
  points: `update series set high = high + 1 where high is not null and price_id in
    (select id from price where code like 'CP-NI-%')`,
};

for (const [name, statement] of Object.entries(COMMITS)) {
  t.test(`a repeated answer is never older than a commit of ${name}`, async (t) => {
    for (const request of [NATIVE, CONVERTED]) {
      for (let times = 0; times < 3; times += 1) await compareOne(t, twins, request);
    }
    const before = twins.answers.state.repeats;
    const old = await answerOf(twins.cached, CONVERTED);
    t.equal(twins.answers.state.repeats, before + 1, 'the kept answer is sent again');
    await inRevision(database.pool, statement);
    for (const request of [CONVERTED, NATIVE]) {
      for (let times = 0; times < 3; times += 1) {
        t.equal(await compareOne(t, twins, request), 200);
      }
    }
    t.not((await answerOf(twins.cached, CONVERTED)).body.toString(), old.body.toString());
  });
}

t.test('an answer that names other markets is not that of who may not read them', async (t) => {
  const few = await keyFor(database, ['prices:nickel']);
  const { rows } = await database.pool.query(`select code from price
    where market_id = (select id from market where slug = 'copper') limit 1`);
  const body = { filters: { codes: [rows[0].code] } };
  const answerFor = async (key: string) => {
    const headers = { 'x-api-key': key };
    const url = '/v3/prices/nickel';
    const answer = await twins.cached.request({ method: 'POST', url, headers, payload: body });
    return JSON.stringify(answer.json.$metadata.warnings).includes('copper');
  };
  const before = twins.answers.state.repeats;
  for (let times = 0; times < 3; times += 1) t.equal(await answerFor(twins.cached.key), true);
  t.equal(twins.answers.state.repeats, before + 1, 'the kept answer is sent again');
  for (let times = 0; times < 3; times += 1) t.equal(await answerFor(few), false);
  t.equal(await answerFor(twins.cached.key), true);
});

t.test('a past answer is kept across commits, unless it names codes', async (t) => {
  const { rows } = await database.pool.query('select clock_timestamp() as at');
  const asOf = new Date(rows[0].at).toISOString();
  const past = (more: object): BookRequest => ({ ...NATIVE, ...more, options: { asOf } });
  const whole = past({});
  const named = past({ filters: { codes: ['CP-NI-0001', 'LATER'] } });
  const ask = async (request: BookRequest) => {
    const before = twins.answers.state.repeats;
    t.equal(await compareOne(t, twins, request), 200);
    return twins.answers.state.repeats - before;
  };
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-0001', ['2026-08-01', null, '1', null]),
  );
  for (const request of [whole, named])
    for (let times = 0; times < 3; times += 1) await ask(request);
  t.same([await ask(whole), await ask(named)], [1, 0]);
  const old = await answerOf(twins.cached, named);
  await commit(database.pool, (client) =>
    addPrice(client, { code: 'LATER', currency: 'USD', unit: 'tonne' }),
  );
  t.same([await ask(whole), await ask(named)], [1, 0]);
  const now = await answerOf(twins.cached, named);
  t.match(old.body.toString(), /"unmatched_value"/);
  t.match(now.body.toString(), /"not_yet_existing"/, 'the warning depends on later commits');
});
