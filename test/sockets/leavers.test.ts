import t from 'tap';
import { buildApp } from '../../src/app.ts';
import { newKey, publicIdOf } from '../../src/auth/keys/format.ts';
import { testDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import { addressOf } from '../support/http/address.ts';
import { keyFor } from '../support/http/service.ts';
import {
  exchange,
  getText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';
import { testConfig } from '../support/http/test-config.ts';

t.test(
  'refused keys of a network count, even if the client does not wait for the refusal',
  async (t) => {
    const database = await testDatabase(t);
    const env = { FAILED_AUTH_PER_MINUTE: '3', PRICE_BOOK_BYTES: '0' };
    const service = await startListening(t, database, env);
    const owner = await database.pool.connect();
    t.teardown(() => owner.release(true));
    await owner.query('begin; lock table api_key in access exclusive mode');
    const leavers = Array.from({ length: 4 }, () => new RawConnection(t, service.port));
    for (const each of leavers) each.socket.write(getText('/v3/me', newKey().text));
    await until('all are looked up', async () => (await lockWaits(database.pool)) === 4);
    for (const each of leavers) each.socket.resetAndDestroy();
    await until('all are gone', () => {
      const gone = service.lines.filter((line) => line.includes('"status":499'));
      return gone.length === 4;
    });
    await owner.query('rollback');
    await until('the network is rate limited', async () => {
      const { status } = await exchange(t, service.port, getText('/v3/me', service.key));
      return status === 429;
    });
    t.pass('by the refusals of disconnected clients');
  },
);

t.test('a key is used by who leaves before its answer', async (t) => {
  const database = await testDatabase(t);
  const { client, pool: usagePool } = database;
  const config = testConfig({ PRICE_BOOK_BYTES: '0' });
  const app = await buildApp({ config, client, usagePool });
  t.teardown(() => app.close());
  const port = Number(new URL(await addressOf(app)).port);
  const key = await keyFor(database, ['prices:*']);
  const lastUsed = async (): Promise<string | null> => {
    const { rows } = await database.pool.query(
      'select last_used_at from key_use where public_id = $1',
      [publicIdOf(key)],
    );
    return rows[0]?.last_used_at ?? null;
  };
  await whileLocked(database, async () => {
    const leaver = new RawConnection(t, port);
    leaver.socket.write(getText('/v3/prices/nickel', key));
    await until(
      'the request waits for the lock',
      async () => (await lockWaits(database.pool)) === 1,
    );
    leaver.socket.destroy();
    await until('the request is aborted', async () => (await lockWaits(database.pool)) === 0);
  });
  t.equal(await lastUsed(), null, 'the last use is written later');
  await app.close();
  t.not(await lastUsed(), null, 'at the latest when the service stops');
});
