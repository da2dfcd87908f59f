import { readFile } from 'node:fs/promises';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { served } from '../support/http/service-process.ts';
import { Caller, until } from '../support/http/sockets.ts';

/** What the system keeps at most for one listener; where it does not tell, few. */
const kept = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8').catch(() => '128'));

t.test('connections that come while the service is busy are kept, not dropped', async (t) => {
  const service = await served(t, await testDatabase(t));
  const { child } = service.running;
  child.kill('SIGSTOP');
  t.teardown(() => child.kill('SIGCONT'));
  // One that is dropped stays without a connection for as long as the service does.
  const callers = Array.from({ length: Math.min(kept >> 1, 1_000) }, () => {
    const caller = new Caller(t, service.port);
    caller.socket.resume();
    return caller;
  });
  await until('all are connected', () => callers.every(({ socket }) => !socket.connecting));
  for (const { socket } of callers) socket.write('GET /live HTTP/1.1\r\nHost: t\r\n\r\n');
  child.kill('SIGCONT');
  await until('all are answered', () => callers.every(({ text }) => text.includes(' 200 ')));
  t.equal(callers.filter(({ socket }) => socket.closed).length, 0);
});
