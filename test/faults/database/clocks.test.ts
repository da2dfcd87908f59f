import { fileURLToPath } from 'node:url';
import { createKey } from '../../../src/auth/keys/keys.ts';
import { utcMicroseconds } from '../../../src/db/instant.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { inRevision, inTransaction } from '../../support/database/minimal-data.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import {
  codeOf,
  type HttpAnswer,
  openLoad,
  send,
  type Target,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

const HOUR_MS = 3_600_000;
const COMMITS = byLength(15, 100);
const RATE = byLength(20, 50);
const CLOCK = fileURLToPath(new URL('./shifted-clock.ts', import.meta.url));

const ask = (target: Target, asOf?: string): Promise<HttpAnswer> =>
  send(false, target, { path: '/v3/prices/nickel', body: JSON.stringify({ options: { asOf } }) });

const renamed = ({ pool }: TestDatabase, name: string): Promise<number> =>
  inRevision(pool, `update price set name = '${name}' where code = 'CP-NI-0001'`);

/**
 * Simulates a database clock that was an hour ahead until now: the last commit has a future time.
 */
const setBack = ({ pool }: TestDatabase): Promise<unknown> =>
  inTransaction(pool, async (client) => {
    await client.query("set local session_replication_role = 'replica'");
    return client.query(`update revision set committed_at = clock_timestamp() + interval '1 hour'
      where number = (select max(number) from revision)`);
  });

/** Commits repeatedly; returns the revisions and times from the answers. */
async function snapshotsOf(database: TestDatabase, target: Target): Promise<[bigint, string][]> {
  const snapshots: [bigint, string][] = [];
  for (let count = 0; count < COMMITS; count += 1) {
    await renamed(database, `Name ${count}`);
    const { revision, asOf } = JSON.parse((await ask(target)).text).$metadata;
    // With six fractional digits, times sort as text.
    snapshots.push([BigInt(revision.split('.')[1]), utcMicroseconds(asOf)]);
  }
  return snapshots;
}

const isGrowing = (snapshots: readonly (readonly [bigint, string])[]): boolean =>
  snapshots.every(([number, time], at) => {
    const before = snapshots[at - 1];
    return before === undefined || (number > before[0] && time > before[1]);
  });

/** Milliseconds between the first refusal of a key and its expiry by the database clock. */
async function refusedOff({ db, pool }: TestDatabase, target: Target): Promise<number> {
  const { rows } = await pool.query("select clock_timestamp() + interval '3 s' as ends");
  const expiresAt = new Date(rows[0].ends);
  const key = await createKey(db, { name: 'a', scopes: ['prices:nickel'], expiresAt });
  const other = { port: target.port, key: key.key };
  let last = Number.NaN;
  const first = await ask(other);
  if (first.status !== 200) throw new Error(`the key has not begun: ${first.text}`);
  await until('the key is refused', async () => {
    const answer = await ask(other);
    last = Date.now();
    if (last > expiresAt.getTime() + 20_000) throw new Error('the key does not end');
    return codeOf(answer) === 'api_key_expired';
  });
  return Math.abs(last - expiresAt.getTime());
}

fault(
  'F59',
  'clocks of service and database an hour apart, and the database clock set back',
  'under load 0 × 5xx; revisions and their times strictly increase; by the clock of the ' +
    'database, a key expires to the second and a future instant is rejected',
  async (t) => {
    let requests = 0;
    let errors = 0;
    let misplaced = 0;
    const off: number[] = [];
    for (const shiftMs of [HOUR_MS, -HOUR_MS]) {
      const database = await testDatabase(t, { seeded: true });
      const env = {
        CLOCK_SHIFT_MS: String(shiftMs),
        RATE_PER_MINUTE: '0',
        CONCURRENT_MAX: '0',
        RUNNING_MAX: '0',
      };
      const service = await startServiceProcess(t, database, env, ['--import', CLOCK]);
      const load = openLoad(t, service, [{ path: '/v3/prices/copper' }], RATE);
      const snapshots = await snapshotsOf(database, service);
      off.push(await refusedOff(database, service));
      const now = new Date(Date.now() - 1).toISOString();
      t.equal((await ask(service, now)).status, 200, 'now is not the future');
      const soon = new Date(Date.now() + 600_000).toISOString();
      t.equal((await ask(service, soon)).status, 400, 'and the future is not the past');
      await setBack(database);
      snapshots.push(...(await snapshotsOf(database, service)));
      if (!isGrowing(snapshots)) misplaced += 1;
      const last = snapshots.at(-1)?.[1] ?? '';
      const { asOf } = JSON.parse((await ask(service, last)).text).$metadata;
      t.equal(utcMicroseconds(asOf), last, 'the last commit answers as asOf');
      const answers = await load.stop();
      requests += answers.length;
      errors += answers.filter(({ status }) => status >= 500).length;
    }
    return {
      requests,
      'answers with 5xx': within(errors, 0, 'answers'),
      'revisions or times that did not increase': within(misplaced, 0, 'runs'),
      'key rejected off its expiry by at most': within(Math.max(...off), 1_000),
    };
  },
);
