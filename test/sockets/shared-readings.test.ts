import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { lockWaits, whileLocked } from '../support/database/lock-waits.ts';
import { keyFor } from '../support/http/service.ts';
import {
  exchange,
  getText,
  RawConnection,
  startListening,
  until,
} from '../support/http/sockets.ts';

const database = await seededDatabase(t);

/** Reads that concurrent requests share, each with a pattern of its statement. */
const SHARED = {
  '/v3/prices': '%as "firstDate"%',
  '/v3/prices/nickel/filters': '%as position%',
  '/v3/search?q=nickel': '%limit%latest_point_at%',
};

const waiting = (statement: string): Promise<number> => lockWaits(database.pool, statement);

for (const [path, statement] of Object.entries(SHARED)) {
  t.test(`the first request for ${path} can be aborted without effect on later ones`, async (t) => {
    const service = await startListening(t, database);
    const key = await keyFor(database, ['prices:nickel']);
    const [first, second] = [
      new RawConnection(t, service.port),
      new RawConnection(t, service.port),
    ];
    await whileLocked(database, async () => {
      first.socket.write(getText(path, key));
      await until('the first request reads', async () => (await waiting(statement)) === 1);
      second.socket.write(getText(path, key));
      // Its revision check comes later, so the second request waits for the current read.
      t.equal((await exchange(t, service.port, getText('/v3/me', service.key))).status, 200);
      first.socket.destroy();
      await until('one has left', () =>
        service.lines.some((line) => line.includes('"status":499')),
      );
      t.equal(await waiting(statement), 1, 'one read runs, and continues');
    });
    await until('the other is answered', () => second.socket.closed);
    t.match(second.text, /^HTTP\/1\.1 200 /);
  });

  t.test(`a request that waits for ${path} has its own deadline`, async (t) => {
    const service = await startListening(t, database, { REQUEST_DEADLINE_MS: '300' });
    await whileLocked(database, async () => {
      const { status, json } = await exchange(t, service.port, getText(path, service.key));
      t.same([status, json.code], [504, 'query_timeout']);
    });
    await until('the next one is answered', async () => {
      const again = await exchange(t, service.port, getText(path, service.key));
      return again.status === 200;
    });
  });
}
