import t from 'tap';
import { ownCluster } from '../support/database/cluster.ts';
import { standbyOf } from '../support/database/standby.ts';
import { until } from '../support/http/sockets.ts';
import { prices, startCommand } from '../support/process/programs.ts';
import { fileOf, points } from './support/loading.ts';

const primary = await ownCluster(t);
const standby = await standbyOf(t, primary);

const TIMEOUT_MS = 1_500;
const ENV = {
  DATABASE_URL: primary.url,
  LOAD_CONFIRM: 'standbys',
  LOAD_CONFIRM_TIMEOUT_MS: String(TIMEOUT_MS),
};
const WARNING = /^Committed here, not confirmed on a standby: the change is made/m;

const values = (day: string): string => points(`CP-NI-0001,${day},,100,,`);

/** Runs `load csv` on a file. */
const load = async (path: string, env: Record<string, string> = {}) => {
  const begun = performance.now();
  const outcome = await prices(
    t,
    { ...ENV, ...env },
    'load',
    'csv',
    path,
    '--json',
    '--accept-jumps',
  );
  return {
    ...outcome,
    ms: performance.now() - begun,
    report: JSON.parse(outcome.stdout || outcome.stderr),
  };
};

/** Sets the standbys that the primary waits for. */
async function waitFor(names: string): Promise<void> {
  await primary.query(`alter system set synchronous_standby_names = '${names}'`);
  await primary.query('select pg_reload_conf()');
  await until('the setting holds', async () => {
    const { rows } = await primary.query('show synchronous_standby_names');
    return rows[0].synchronous_standby_names === names;
  });
}

const newest = async (server: typeof primary): Promise<string> =>
  (await server.query('select max(number)::text as number from revision')).rows[0].number;

const IS_WAITING = `select pid from pg_stat_activity where wait_event = 'SyncRep'
  and application_name = 'commodity-prices command'`;

t.test('a server without synchronous standbys confirms no load', async (t) => {
  const path = await fileOf(t, values('1991-01-01'));
  const done = await load(path);
  t.match(done, { code: 5, stderr: WARNING, report: { status: 'applied', confirmed: false } });
  const plain = await load(await fileOf(t, values('1991-01-02')), { LOAD_CONFIRM: 'off' });
  t.match(plain, { code: 0, report: { status: 'applied', confirmed: null } });
});

t.test('a commit that works longer than the wait for standbys is not cut off', async (t) => {
  // Longer than the timeout, and than the silence after which a connection is aborted.
  await primary.query(`create function slow_commit() returns trigger language plpgsql
    as $$ begin perform pg_sleep(7); return null; end $$;
    create constraint trigger slow_commit after insert on revision
      deferrable initially deferred for each row execute function slow_commit()`);
  const env = { LOAD_CONFIRM: 'off', LOAD_CONFIRM_TIMEOUT_MS: '100' };
  const done = await load(await fileOf(t, values('1991-01-03')), env);
  t.match(done, { code: 0, report: { status: 'applied', confirmed: null } });
  await primary.query('drop trigger slow_commit on revision; drop function slow_commit()');
});

t.test('a confirmed load is on the standby when it returns', async (t) => {
  await waitFor('*');
  for (let day = 1; day <= 5; day += 1) {
    const done = await load(await fileOf(t, values(`1991-02-0${day}`)));
    t.match(done, { code: 0, report: { status: 'applied', confirmed: true } });
    t.equal(`${done.report.revision.split('.')[1]}`, await newest(standby));
  }
});

t.test('a load that no standby shows in time is committed, and says so', async (t) => {
  await standby.query('select pg_wal_replay_pause()');
  const path = await fileOf(t, values('1991-03-01'));
  const done = await load(path);
  t.match(done, { code: 5, stderr: WARNING, report: { status: 'applied', confirmed: false } });
  t.ok(done.ms >= TIMEOUT_MS, 'the load waited');
  t.equal(done.report.revision.split('.')[1], await newest(primary), 'the load is committed');
  t.not(await newest(standby), await newest(primary));
  const again = await load(path);
  t.match(again, { code: 5, report: { status: 'already-loaded', confirmed: false } });
  await standby.query('select pg_wal_replay_resume()');
  const confirmed = await load(path);
  t.match(confirmed, {
    code: 0,
    report: { status: 'already-loaded', batch: done.report.batch, confirmed: true },
  });
  t.equal(await newest(standby), await newest(primary));
});

t.test('without a standby every change ends in time, and a refused load at once', async (t) => {
  await standby.stop();
  const done = await load(await fileOf(t, values('1991-04-01')));
  t.match(done, { code: 5, report: { status: 'applied', confirmed: false } });
  const batch = String(done.report.batch);
  const undone = await prices(t, ENV, 'load', 'undo', batch, '--reason', 'a test');
  t.match(undone, { code: 5, stderr: WARNING, stdout: /is undone/ });
  const withdrawn = await prices(
    t,
    ENV,
    ...['withdraw', 'CP-NI-0001', '--date', '1991-03-01', '--reason', 'a test'],
  );
  t.match(withdrawn, { code: 5, stderr: WARNING, stdout: /^Withdrawn|\nWithdrawn/ });
  const off = await load(await fileOf(t, values('1991-04-02')), { LOAD_CONFIRM: 'off' });
  t.match(off, { code: 5, report: { status: 'applied', confirmed: false } });
  const refused = await load(await fileOf(t, values('1991-99-99')), {
    LOAD_CONFIRM_TIMEOUT_MS: '600000',
  });
  t.match(refused, { code: 3, report: { status: 'refused', confirmed: null } });
});

t.test('a load whose session is ended while it waits is committed, and says so', async (t) => {
  const path = await fileOf(t, values('1991-05-01'));
  const env = { ...ENV, LOAD_CONFIRM_TIMEOUT_MS: '600000' };
  const command = startCommand(t, env, 'load', 'csv', path, '--json', '--accept-jumps');
  await until('the load waits', async () => (await primary.query(IS_WAITING)).rows.length > 0);
  await primary.query(`select pg_terminate_backend(pid) from (${IS_WAITING}) as waiting`);
  t.equal(await command.ended, 5);
  t.match(command.stderr(), WARNING);
  t.match(JSON.parse(command.stdout()), { status: 'applied', confirmed: false });
});
