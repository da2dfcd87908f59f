import t from 'tap';
import { ownCluster } from '../../support/database/cluster.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { standbyOf } from '../../support/database/standby.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { codeOf, type HttpAnswer, send, type Target } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

const QUESTIONS = byLength(60, 1_000);
const AT_A_TIME = byLength(30, 50);
/** The replay delays of the standby, in order. */
const LAGS = byLength(['0', '700ms'], ['0', '500ms', '1500ms', '3s', '5s']);

const primary = await ownCluster(t);
const standby = await standbyOf(t, primary);

const ENV = {
  PRICE_BOOK_BYTES: '0',
  RUNNING_MAX: '0',
  RATE_PER_MINUTE: '0',
  CONCURRENT_MAX: '0',
  KEYS_LAG_MS_MAX: '0',
};

async function on(url: string, env: Record<string, string> = {}): Promise<Target> {
  const service = await primary.using((database) =>
    startServiceProcess(t, database, { ...ENV, ...env, DATABASE_URL: url }),
  );
  await until('its key has come', async () => (await ask(service)).status === 200);
  return service;
}

const ask = (target: Target, asOf?: string): Promise<HttpAnswer> =>
  send(false, target, { path: '/v3/prices/nickel', body: JSON.stringify({ options: { asOf } }) });

/** The first answer that is no retryable 503, and the number of those before it. */
async function answerOf(target: Target, asOf: string): Promise<{ text: string; again: number }> {
  let again = 0;
  let answer = await ask(target, asOf);
  await until('the request is answered', async () => {
    // Includes 503 overloaded, which the many retries cause.
    if (answer.status !== 503) return true;
    again += 1;
    answer = await ask(target, asOf);
    return false;
  });
  return { text: answer.text, again };
}

/** Commits continuously until stopped. */
function committing(): () => Promise<number> {
  let isOver = false;
  let commits = 0;
  const run = primary.using(async ({ pool }) => {
    while (!isOver) {
      commits += 1;
      const name = `Commit ${commits}`;
      await inRevision(pool, `update price set name = '${name}' where code = 'CP-NI-0001'`);
    }
    return commits;
  });
  return () => {
    isOver = true;
    return run;
  };
}

fault(
  'F57',
  'the same asOf on a primary and on a standby that is behind',
  '0 different answers of 1,000 while the standby is 0 to 5 s behind, with and without the ' +
    'address of the primary; an instant that is not replayed is 503 revision_not_here; a future ' +
    'instant is rejected',
  async (t) => {
    const one = await on(primary.url);
    const both = await on(standby.url, { USAGE_DATABASE_URL: primary.url });
    const alone = await on(standby.url);
    const stop = committing();
    let again = 0;
    const different: string[] = [];
    const texts = new Set<string>();
    const compare = async (): Promise<void> => {
      const asOf = new Date(Date.now() - Math.random() * 50).toISOString();
      const all = await Promise.all([one, both, alone].map((each) => answerOf(each, asOf)));
      again += all.reduce((sum, each) => sum + each.again, 0);
      const found = new Set(all.map(({ text }) => text));
      if (found.size > 1) different.push(`${asOf}: ${all.map(({ text }) => text.slice(0, 120))}`);
      for (const text of found) texts.add(text);
    };
    for (const lag of LAGS) {
      await standby.query(`alter system set recovery_min_apply_delay = '${lag}'`);
      await standby.query('select pg_reload_conf()');
      let left = Math.ceil(QUESTIONS / LAGS.length);
      const worker = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          await compare();
        }
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, worker));
    }
    const commits = await stop();
    t.same(different.slice(0, 3), []);
    t.ok(texts.size > byLength(3, 20), `${texts.size} revisions`);
    // The primary is idle; only the primary can prove that nothing was committed since.
    const later = new Date().toISOString();
    await until('the request is answered', async () => (await ask(both, later)).status === 200);
    t.equal(codeOf(await ask(alone, later)), 'revision_not_here');
    const future = new Date(Date.now() + 3_600_000).toISOString();
    for (const each of [one, both, alone]) t.equal((await ask(each, future)).status, 400);
    return {
      comparisons: QUESTIONS,
      different: { amount: different.length, most: 0, unit: 'answers' },
      retries: again,
      commits,
      states: texts.size,
    };
  },
);
