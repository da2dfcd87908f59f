import { readFile } from 'node:fs/promises';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { startServiceProcess } from '../support/http/service-process.ts';
import { RawConnection, until } from '../support/http/sockets.ts';

/** The accept backlog limit of the system; a small default if it is unknown. */
const kept = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8').catch(() => '128'));

t.test('connections that come while the service is busy are kept, not dropped', async (t) => {
  const service = await startServiceProcess(t, await testDatabase(t));
  const { child } = service.running;
  child.kill('SIGSTOP');
  t.teardown(() => child.kill('SIGCONT'));
  // One that is dropped stays without a connection for as long as the service does.
  const connections = Array.from({ length: Math.min(kept >> 1, 1_000) }, () => {
    const connection = new RawConnection(t, service.port);
    connection.socket.resume();
    return connection;
  });
  await until('all are connected', () => connections.every(({ socket }) => !socket.connecting));
  for (const { socket } of connections) socket.write('GET /live HTTP/1.1\r\nHost: t\r\n\r\n');
  child.kill('SIGCONT');
  await until('all are answered', () => connections.every(({ text }) => text.includes(' 200 ')));
  t.equal(connections.filter(({ socket }) => socket.closed).length, 0);
});
