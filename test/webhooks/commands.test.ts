import t from 'tap';
import { createKey } from '../../src/auth/keys/keys.ts';
import { masked } from '../../src/std/secrets.ts';
import {
  inRevision,
  insertOf,
  pointRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { roledDatabase } from '../support/database/roles.ts';
import { until } from '../support/http/sockets.ts';
import { prices, startCommand } from '../support/process/programs.ts';
import { startReceiver, verified } from './support.ts';

t.test('the commands work with the accounts that are made for them', async (t) => {
  const database = await roledDatabase(t);
  await writeMinimalData(database.pool);
  const { id: key } = await createKey(database.as('keys').db, {
    ...{ name: 'desk', scopes: ['prices:nickel'], expiresAt: null },
  });
  const receiver = await startReceiver(t);
  const env = { DATABASE_URL: database.urlOf('keys'), WEBHOOK_NETWORKS: '127.0.0.0/8' };
  const webhooks = async (...args: string[]) => {
    const { code, stdout, stderr } = await prices(t, env, 'webhooks', ...args, '--json');
    return { code, stderr, json: stdout === '' ? null : JSON.parse(stdout) };
  };
  const added = await webhooks('add', receiver.url, '--key', key, '--operations', 'published,late');
  t.equal(added.code, 0, added.stderr);
  const { id, secret } = added.json;
  t.match(added.json, { url: receiver.url, key, operations: ['published', 'late'] });
  const sender = startCommand(
    t,
    {
      ...{ DATABASE_URL: database.urlOf('webhooks'), WEBHOOK_NETWORKS: '127.0.0.1' },
      PUBLIC_URL: 'https://prices.example.com',
    },
    ...['webhooks', 'run'],
  );
  await sender.until('stderr', 'webhooks are sent');
  t.match(await webhooks('test', id), { code: 0, json: { outcome: 'delivered', result: '204' } });
  await inRevision(database.pool, insertOf('series', pointRow()));
  await until('the message is there', () =>
    receiver.received.some(({ json }) => json.type === 'prices.changed'),
  );
  for (const message of receiver.received) t.ok(verified(secret, message));
  const found = receiver.received.find(({ json }) => json.type === 'prices.changed');
  t.match(found?.json.data.changes, /^https:\/\/prices\.example\.com\/v3\/changes\?after=revision/);
  const rotated = await webhooks('rotate', id, '--grace', '1h');
  t.match(rotated.json, { secret: /^whsec_/, oldSecretUntil: String });
  const listed = await webhooks('list');
  t.match(listed.json, [{ id, status: 'active', waiting: 0, deliveredAt: String }]);
  t.notMatch(JSON.stringify(listed.json), /whsec_/);
  sender.child.kill('SIGTERM');
  t.equal(await sender.ended, 0);
  t.notMatch(sender.stderr(), /whsec_|\/bell/, 'the log has no secret and no path');
  t.notMatch(sender.stderr(), /webhooks wait/, 'the account may read all that lateness needs');
  t.match(await webhooks('remove', id), { code: 0, json: { id } });
  t.same((await webhooks('list')).json, []);
  const audit = await prices(t, env, 'keys', 'audit', key);
  t.match(audit.stdout, new RegExp(`webhook ${id} added`));
  t.match(audit.stdout, new RegExp(`webhook ${id} removed`));
});

t.test('only the account that sends reads secrets', async (t) => {
  const database = await roledDatabase(t);
  for (const login of ['service', 'keys', 'usage', 'loader', 'reader'] as const) {
    await t.rejects(
      database.as(login).pool.query('select secret from public.webhook_secret'),
      /permission denied/,
      login,
    );
  }
  await t.rejects(database.as('service').pool.query('select url from webhook'), /denied/);
  const sender = database.as('webhooks').pool;
  await sender.query('select secret from webhook_secret');
  for (const statement of [
    'select digest from api_key',
    'insert into series select * from series',
    "update webhook set url = 'https://example.com/'",
    'update webhook_secret set expires_at = now()',
    "select open_revision('x')",
    'create temporary table mine (a integer)',
  ]) {
    await t.rejects(sender.query(statement), /permission denied/, statement);
  }
});

t.test('wrong arguments of add are refused before anything is stored', async (t) => {
  const env = { DATABASE_URL: 'postgres://me@127.0.0.1:1/none' };
  const add = async (...args: string[]) => {
    const { code, stderr } = await prices(t, env, 'webhooks', 'add', 'https://a.example/', ...args);
    return `${code} ${stderr}`;
  };
  const key = ['--key', '7hQ2mB9xTa'];
  t.match(await add(...key, '--market', 'nikel'), /^2 .*did you mean nickel\?/);
  t.match(await add(...key, '--operations', 'correct'), /^2 .*did you mean corrected\?/);
  t.match(await add(...key, '--codes', 'ü'), /^2 .*is not the code of a price/);
  const many = Array.from({ length: 51 }, (_, at) => `C-${at}`).join();
  t.match(await add(...key, '--codes', many), /^2 .*at most 50 codes/);
});

t.test('a secret is masked in lines that should not have one', (t) => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  t.equal(masked(`the secret ${secret} is wrong`), 'the secret [secret] is wrong');
  t.end();
});
