import t, { type Test } from 'tap';
import { dataFolder, prices, startService } from '../support/process/programs.ts';

const keyIn = (banner: string): string => /cps_live_\w+/.exec(banner)?.[0] ?? '';
const addressIn = (banner: string): string => /http:\/\/\S+?:\d+/.exec(banner)?.[0] ?? '';

const statusOf = async (banner: string, key: string): Promise<number> =>
  (await fetch(`${addressIn(banner)}/v3/prices`, { headers: { 'x-api-key': key } })).status;

type Key = Record<'status' | 'revokedReason' | 'createdAt' | 'expiresAt', string>;

/** The keys of a database, the oldest first. */
async function keysIn(test: Test, env: Readonly<Record<string, string>>): Promise<Key[]> {
  return JSON.parse((await prices(test, env, 'keys', 'list', '--json')).stdout);
}

t.test(
  'a second start has its own key; keys are revoked at the end, or when PostgreSQL starts again',
  async (t) => {
    const env = { DATA_DIR: await dataFolder(t) };
    const first = startService(t, env);
    const one = await first.until('stdout', 'Ctrl-C');
    t.match(first.stderr(), `Starting PostgreSQL in ${env.DATA_DIR} …\n`);
    const second = startService(t, env);
    const two = await second.until('stdout', 'Ctrl-C');
    t.not(keyIn(one), keyIn(two));
    t.match(second.stderr(), `Using the running PostgreSQL in ${env.DATA_DIR} …\n`);
    t.notMatch(second.stderr(), 'Starting PostgreSQL');
    for (const banner of [one, two]) t.equal(await statusOf(banner, keyIn(banner)), 200);

    first.child.kill('SIGTERM');
    t.equal(await first.ended, 0);
    t.match(first.stdout(), /\nThe service has stopped\.\n$/);
    t.match(first.stderr(), /"msg":"the service has stopped"/, 'the log says it as well');
    t.equal(await statusOf(two, keyIn(one)), 401, 'a stop takes its own key');
    t.equal(await statusOf(two, keyIn(two)), 200, 'and no other');
    const [revoked, active, ...others] = await keysIn(t, env);
    t.match(revoked, { status: 'revoked', revokedReason: 'the service that showed it stopped' });
    t.match(active, { status: 'active' });
    t.same(others, []);
    for (const { createdAt, expiresAt } of [revoked, active] as Key[]) {
      const hours = (Date.parse(expiresAt) - Date.parse(createdAt)) / 3_600_000;
      t.ok(Math.abs(hours - 24) < 0.1, `a demo key expires after 24 hours: ${hours}`);
    }
    t.equal(await statusOf(two, keyIn(two)), 200, 'the end of a command stops no server');

    second.child.kill('SIGKILL');
    await second.ended;
    // A command that ends stops the server, which nothing else uses.
    t.equal((await keysIn(t, env))[1]?.status, 'active');
    const third = startService(t, env);
    const three = await third.until('stdout', 'Ctrl-C');
    t.match(third.stderr(), 'Starting PostgreSQL');
    t.equal(await statusOf(three, keyIn(two)), 401, 'the key of the killed service is revoked');
    t.equal(await statusOf(three, keyIn(three)), 200);
  },
);

t.test('two first starts at the same moment both work', async (t) => {
  const env = { DATA_DIR: await dataFolder(t) };
  const both = [startService(t, env), startService(t, env)];
  const banners = await Promise.all(both.map((each) => each.until('stdout', 'Ctrl-C')));
  for (const banner of banners) t.equal(await statusOf(banner, keyIn(banner)), 200);
});
