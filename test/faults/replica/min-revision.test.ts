import t from 'tap';
import { ownCluster } from '../../support/database/cluster.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { standbyOf } from '../../support/database/standby.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { codeOf, type HttpAnswer, send, type Target } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

const COMMITS = byLength(20, 200);

const primary = await ownCluster(t);
const standby = await standbyOf(t, primary);

const ENV = {
  RATE_PER_MINUTE: '0',
  CONCURRENT_MAX: '0',
  KEYS_LAG_MS_MAX: '0',
  READY_LAG_MS_MAX: '1000',
};

const nodeOn = (url: string, more: Readonly<Record<string, string>> = {}): Promise<Target> =>
  primary.using((database) =>
    startServiceProcess(t, database, { ...ENV, ...more, DATABASE_URL: url }),
  );

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
  '0 answers older than the x-min-revision of their request; a standby that lacks it answers 503 ' +
    'revision_not_here after ≤ 1 s; a primary answers one beyond its newest at its newest; no ' +
    'revision that a client names makes a node not ready, only its lag does',
  async (t) => {
    const one = await nodeOn(primary.url);
    const two = await nodeOn(standby.url);
    const both = await nodeOn(standby.url, { USAGE_DATABASE_URL: primary.url });
    const patient = await nodeOn(standby.url, { MIN_REVISION_WAIT_MS: '10000' });
    for (const each of [one, two, both, patient]) {
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
    const waiting = ask(patient, seen);
    const begun = performance.now();
    t.equal(codeOf(await ask(two, seen)), 'revision_not_here');
    const refusedMs = performance.now() - begun;
    await until('the lag makes it not ready', async () => (await readiness(two)) === 503);
    t.equal(await readiness(two, '?drain=404'), 404, 'not ready, in the words of HAProxy');
    t.equal(await readiness(two, '?behind=ok'), 200, 'ready for a balancer without another node');
    t.equal(codeOf(await ask(both, 'latest')), 'revision_not_here');
    t.equal((await ask(two)).status, 200, 'without the header it answers');
    t.equal(codeOf(await ask(two, 'latest')), 'revision_not_here', 'the node has no primary');
    await standby.query('select pg_wal_replay_resume()');
    t.equal(revisionOf(await waiting), seen, 'a request waits for the revision');
    await until('the standby has caught up', async () => (await ask(two, seen)).status === 200);
    await until('the node is ready', async () => (await readiness(two)) === 200);

    // No node can find out that a standby will never have this revision.
    const [prefix] = seen.split('.');
    const beyond = `${prefix}.999999999`;
    t.equal(codeOf(await ask(two, beyond)), 'revision_not_here');
    t.equal(await readiness(two), 200, 'a revision that a client names does not change that');
    const answered = await ask(one, beyond);
    t.same([answered.status, answered.headers['x-min-revision-unknown']], [200, beyond]);
    t.equal(revisionOf(answered), seen, 'the primary answers at its newest revision');
    return {
      commits: COMMITS,
      older: { amount: older, most: 0, unit: 'answers' },
      revision_not_here: refused,
      'rejected after': { amount: refusedMs, most: 1_000, unit: 'ms' },
    };
  },
);
