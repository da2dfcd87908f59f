import { once } from 'node:events';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import {
  exchange,
  postText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

t.test('a client that is gone before its request is looked at is no failure', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  const seen: (string | undefined)[] = [];
  service.app.server.on('request', ({ socket }) => seen.push(socket.remoteAddress));
  // The order of revision check and reset is not deterministic.
  await until('some had no address any more', async () => {
    const connections = Array.from({ length: 20 }, () => new RawConnection(t, service.port));
    await Promise.all(
      connections.map(async ({ socket }) => {
        await once(socket, 'connect');
        socket.write(postText(service, 'nickel', {}));
        socket.resetAndDestroy();
      }),
    );
    await until('the requests are there', () => seen.length > 0);
    return seen.includes(undefined);
  });
  const last = postText(service, 'nickel', {}, 'Connection: close\r\n');
  t.equal((await exchange(t, service.port, last)).status, 200);
  t.same(service.failures(), []);
});
