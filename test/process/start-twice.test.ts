import t from 'tap';
import { dataFolder, prices, startService } from '../support/process/programs.ts';

const keyIn = (banner: string): string => /cps_live_\w+/.exec(banner)?.[0] ?? '';
const addressIn = (banner: string): string => /http:\/\/\S+?:\d+/.exec(banner)?.[0] ?? '';

const statusOf = async (banner: string, key: string): Promise<number> =>
  (await fetch(`${addressIn(banner)}/v3/prices`, { headers: { 'x-api-key': key } })).status;

t.test(
  'a second start keeps the key of the first and shows its address; keys are revoked at the end',
  async (t) => {
    const env = { DATA_DIR: await dataFolder(t) };
    const first = startService(t, env);
    const one = await first.until('stdout', 'Ctrl-C');
    t.match(first.stderr(), `Starting PostgreSQL in ${env.DATA_DIR} …\n`);
    t.notMatch(one, 'already');
    const second = startService(t, env);
    const two = await second.until('stdout', 'Ctrl-C');
    t.match(two, `Runs on this data already  ${addressIn(one)}\n`);
    t.not(keyIn(one), keyIn(two));
    t.match(second.stderr(), `Using the running PostgreSQL in ${env.DATA_DIR} …\n`);
    t.notMatch(second.stderr(), 'Starting PostgreSQL');
    for (const banner of [one, two]) t.equal(await statusOf(banner, keyIn(banner)), 200);

    first.child.kill('SIGKILL');
    await first.ended;
    const third = startService(t, env);
    const three = await third.until('stdout', 'Ctrl-C');
    t.match(three, `Runs on this data already  ${addressIn(two)}\n`);
    t.notMatch(three, `already  ${addressIn(one)}\n`, 'a service that has ended is not shown');
    const listed = await prices(t, env, 'keys', 'list', '--json');
    const keys = JSON.parse(listed.stdout) as Record<
      'status' | 'createdAt' | 'expiresAt',
      string
    >[];
    for (const { createdAt, expiresAt } of keys) {
      const hours = (Date.parse(expiresAt) - Date.parse(createdAt)) / 3_600_000;
      t.ok(Math.abs(hours - 24) < 0.1, `a demo key expires after 24 hours: ${hours}`);
    }
    const states = keys.map(({ status }) => status);
    t.same(states, ['revoked', 'active', 'active'], 'the key of who ended goes at the next start');
    for (const banner of [two, three]) t.equal(await statusOf(banner, keyIn(banner)), 200);

    second.child.kill('SIGTERM');
    t.equal(await second.ended, 0);
    t.match(second.stdout(), /\nThe service has stopped\.\n$/);
    t.match(second.stderr(), /"msg":"the service has stopped"/, 'the log says it as well');
    t.equal(await statusOf(three, keyIn(two)), 401, 'a stop takes its own key');
    t.equal(await statusOf(three, keyIn(three)), 200, 'and no other');
    const { stdout } = await prices(t, env, 'keys', 'list', '--json');
    t.match((JSON.parse(stdout) as unknown[])[1], {
      status: 'revoked',
      revokedReason: 'the service that showed it stopped',
    });
  },
);
