import pg from 'pg';
import t from 'tap';
import { applyRoles } from '../../src/db/migrate/roles.ts';
import { ownCluster } from '../support/database/cluster.ts';
import { standbyOf } from '../support/database/standby.ts';
import { until } from '../support/http/sockets.ts';
import { type Running, startCommand } from '../support/process/programs.ts';
import { fileOf, points } from './support/loading.ts';

const PASSWORD = 'as-good-as-any';

const primary = await ownCluster(t);
await primary.using(({ db }) => applyRoles(db, 'prices', new Map([['loader', PASSWORD]])));
const standby = await standbyOf(t, primary);
await primary.query("alter system set synchronous_standby_names = '*'");
await primary.query('select pg_reload_conf()');

const loader = new URL(primary.url);
loader.username = 'prices_loader';
loader.password = PASSWORD;

const waits = (condition: string) => async (): Promise<boolean> => {
  const text = `select from pg_stat_activity where usename = 'prices_loader' and ${condition}`;
  return (await primary.query(text)).rows.length > 0;
};
const waitsForStandby = waits("wait_event = 'SyncRep'");

const has = async (server: typeof primary, day: string): Promise<boolean> => {
  const { rows } = await server.query(`select from series where date = '${day}'`);
  return rows.length > 0;
};

/** Starts a load, and stops the standby before its commit. Returns it while its commit waits. */
async function waitingLoad(test: Pick<typeof t, 'teardown'>, day: string): Promise<Running> {
  const path = await fileOf(test, points(`CP-NI-0001,${day},,100,,`));
  const writer = new pg.Client({ connectionString: primary.url });
  await writer.connect();
  await writer.query('begin; select lock_revisions()');
  const env = { DATABASE_URL: loader.href };
  const running = startCommand(test, env, 'load', 'csv', path, '--accept-jumps');
  await until('the load waits for the writer', waits("wait_event_type = 'Lock'"));
  await standby.stop();
  await writer.query('rollback');
  await writer.end();
  await until('the load waits for the standby', waitsForStandby);
  return running;
}

t.test('a load is visible and reported only once a synchronous standby has it', async (t) => {
  const running = await waitingLoad(t, '1991-01-01');
  t.notOk(await has(primary, '1991-01-01'));
  t.equal(running.stdout().includes('Loaded'), false);
  await standby.restart('fast');
  t.equal(await running.ended, 0);
  t.ok(await has(primary, '1991-01-01'));
  await until('the standby shows it', () => has(standby, '1991-01-01'));
});

t.test('Ctrl-C does not leave a load on the primary alone', async (t) => {
  const running = await waitingLoad(t, '1991-01-02');
  running.child.kill('SIGINT');
  t.equal(await running.ended, 130);
  t.ok(await waitsForStandby(), 'its commit still waits');
  t.notOk(await has(primary, '1991-01-02'));
  await standby.restart('fast');
  await until('the primary shows it', () => has(primary, '1991-01-02'));
  await until('the standby shows it', () => has(standby, '1991-01-02'));
});
