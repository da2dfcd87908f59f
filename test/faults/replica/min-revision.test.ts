import t from 'tap';
import { ownCluster } from '../../support/database/cluster.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { listOf, standbyOf } from '../../support/database/standby.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { codeOf, type HttpAnswer, send, type Target } from '../../support/process/load.ts';
import { byLength, fault } from '../../support/run/faults.ts';

const COMMITS = byLength(20, 200);

const primary = await ownCluster(t);
const standby = await standbyOf(t, primary);

const ENV = {
  RATE_PER_MINUTE: '0',
  CONCURRENT_MAX: '0',
  DATABASE_LAG_MS_MAX: '0',
  KEYS_LAG_MS_MAX: '0',
};

const nodeOn = (url: string): Promise<Target> =>
  primary.using((database) => startServiceProcess(t, database, { ...ENV, DATABASE_URL: url }));

const ask = (target: Target, min?: string): Promise<HttpAnswer> =>
  send(false, target, {
    path: '/v3/prices/nickel',
    body: '{}',
    headers: min === undefined ? {} : { 'x-min-revision': min },
  });

const revisionOf = ({ headers }: HttpAnswer): string => String(headers['x-data-revision']);
const numberIn = (revision: string): number => Number(revision.split('.')[1]);

const readiness = async (target: Target, query = '') =>
  (await send(false, target, { path: `/ready${query}` })).status;

const commit = (count: number) =>
  primary.using(({ pool }) =>
    inRevision(pool, `update price set name = 'Commit ${count}' where code = 'CP-NI-0001'`),
  );

fault(
  'F60',
  'two nodes, one on the primary and one on a standby whose replay pauses',
  '0 answers older than the x-min-revision of their request; a node that lacks it answers 503 ' +
    'revision_not_here after ≤ 1 s, and is not ready until it has caught up',
  async (t) => {
    const one = await nodeOn(primary.url);
    const two = await nodeOn(standby.url);
    const both = await nodeOn(listOf(standby, primary));
    for (const each of [one, two, both]) {
      await until('its key has come', async () => (await ask(each)).status === 200);
    }
    let older = 0;
    let refused = 0;
    for (let count = 0; count < COMMITS; count += 1) {
      await commit(count);
      const seen = revisionOf(await ask(one));
      for (const [target, min] of [
        [two, seen],
        [both, 'latest'],
      ] as const) {
        const answer = await ask(target, min);
        if (answer.status === 200) older += Number(numberIn(revisionOf(answer)) < numberIn(seen));
        else if (codeOf(answer) === 'revision_not_here') refused += 1;
        else t.fail(`${answer.status} ${answer.text}`);
      }
    }
    await standby.query('select pg_wal_replay_pause()');
    await commit(COMMITS);
    const seen = revisionOf(await ask(one));
    const begun = performance.now();
    t.equal(codeOf(await ask(two, seen)), 'revision_not_here');
    const refusedMs = performance.now() - begun;
    t.equal(await readiness(two), 503, 'not ready');
    t.equal(await readiness(two, '?drain=404'), 404, 'not ready, in the words of HAProxy');
    t.equal(await readiness(two, '?behind=ok'), 200, 'ready for a balancer without another node');
    t.equal(codeOf(await ask(both, 'latest')), 'revision_not_here');
    t.equal((await ask(two)).status, 200, 'without the header it answers');
    t.equal(codeOf(await ask(two, 'latest')), 'revision_not_here', 'the node has no primary');
    await standby.query('select pg_wal_replay_resume()');
    await until('the standby has caught up', async () => (await ask(two, seen)).status === 200);
    await until('the node is ready', async () => (await readiness(two)) === 200);

    // A nonexistent revision makes no node unready.
    const [prefix] = seen.split('.');
    t.equal(codeOf(await ask(two, `${prefix}.999999999`)), 'revision_not_here');
    await until('the node is ready again', async () => (await readiness(two)) === 200);
    return {
      commits: COMMITS,
      older: { amount: older, most: 0, unit: 'answers' },
      revision_not_here: refused,
      'rejected after': { amount: refusedMs, most: 1_000, unit: 'ms' },
    };
  },
);
