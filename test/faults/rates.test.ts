import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { testDatabase } from '../support/database.ts';
import { byLength, fault, within } from '../support/faults.ts';
import { type Answered, agentOf, codeOf, intolerable, openLoad, send } from '../support/load.ts';
import { served } from '../support/served.ts';
import { keyFor } from '../support/service.ts';
import { until } from '../support/sockets.ts';

type Test = typeof t;

const BURST = 60;
const PER_SECOND = 10;
const LIMITS = { RATE_PER_MINUTE: '600', RATE_BURST: String(BURST), CONCURRENT_MAX: '0' };
const ASK = { path: '/v3/me' };
const SECONDS = byLength(2, 60);

const accepted = (answers: readonly Answered[]): number =>
  answers.filter(({ status }) => status === 200).length;

/** The most that a bucket gives while a clock that is outside of it runs. */
const allowance = (begun: number): number =>
  BURST + (PER_SECOND * (performance.now() - begun)) / 1_000;

/** Every answer tells the limit, and every refusal when to come back. */
function toldAll(test: Test, answers: readonly Answered[]): void {
  test.same(intolerable(answers), []);
  const refused = answers.filter(({ status }) => status !== 200);
  const told = new Set(refused.map((each) => `${each.status} ${codeOf(each)}`));
  told.delete('429 rate_limited');
  test.same([...told], []);
  test.ok(answers.every(({ headers }) => headers['ratelimit']));
  test.ok(refused.every(({ headers }) => Number(headers['retry-after']) >= 1));
}

fault(
  'F35',
  'twice the rate of a key, at one instance and at two; the store that they share taken away',
  'accepted ≤ limit + 5 %, for a second instance ≤ 1 s of traffic more; whoever waits as told is ' +
    'answered; no 5xx',
  async (t) => {
    const database = await testDatabase(t);
    const one = await served(t, database, LIMITS);
    const begun = performance.now();
    const load = openLoad(t, one, [ASK], 2 * PER_SECOND + BURST);
    await pause(SECONDS * 1_000);
    const answers = await load.stop();
    const most = allowance(begun);
    toldAll(t, answers);
    t.ok(accepted(answers) <= most * 1.05, `${accepted(answers)} of ${most}`);
    let honest = 0;
    const agent = agentOf(t, 16);
    for (let turn = 0; turn < byLength(1, 10); turn += 1) {
      let refused: Answered | undefined;
      await until('the rate is used up', async () => {
        const many = Array.from({ length: 2 * BURST }, () => send(agent, one, ASK));
        refused = (await Promise.all(many)).findLast(({ status }) => status === 429);
        return refused !== undefined;
      });
      await pause(Number(refused?.headers['retry-after']) * 1_000);
      if ((await send(agent, one, ASK)).status === 200) honest += 1;
    }
    t.equal(honest, byLength(1, 10), 'whoever waits as told is answered');

    const shared = { ...LIMITS, USAGE_DATABASE_URL: database.url };
    const both = [await served(t, database, shared), await served(t, database, shared)];
    const key = await keyFor(database, ['prices:*']);
    const from = performance.now();
    const loads = both.map(({ port }) => openLoad(t, { port, key }, [ASK], 2 * PER_SECOND));
    await pause(SECONDS * 1_000);
    const together = (await Promise.all(loads.map((each) => each.stop()))).flat();
    const share = allowance(from);
    toldAll(t, together);
    await database.pool.query('alter table rate_usage rename to gone');
    const alone = openLoad(t, { port: both[0]?.port ?? 0, key }, [ASK], 2 * PER_SECOND);
    await until('it goes on', () => alone.answers.length >= byLength(30, 200));
    const without = await alone.stop();
    t.same(intolerable(without), []);
    t.notOk(
      without.some(({ status }) => status >= 500),
      'the store is no reason to fail',
    );
    return {
      requests: answers.length + together.length + without.length,
      'accepted of its allowance': within((100 * accepted(answers)) / most, 105, '%'),
      'of two instances': within(
        accepted(together),
        Math.ceil(share * 1.05 + 4 * PER_SECOND),
        'requests',
      ),
      'retries as told that were answered': `${honest} of ${byLength(1, 10)}`,
      '5xx without the store': 0,
    };
  },
);
