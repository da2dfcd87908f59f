import { createServer } from 'node:net';
import { join } from 'node:path';
import { seededDatabase, siblingUrl, testDatabase } from '../../support/database/database.ts';
import { addressAs } from '../../support/database/roles.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { codeOf, send } from '../../support/process/load.ts';
import { startService } from '../../support/process/programs.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

const SECRET = 'hunter2-hunter2-hunter2';

fault(
  'F48',
  'invalid settings, and a database that does not match them',
  'the process ends at once with one line that names the setting and no secret, or it starts ' +
    'and is not ready',
  async (t) => {
    const database = await seededDatabase(t);
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    t.teardown(() => taken.close());
    const { port } = taken.address() as { port: number };
    const folder = t.testdir({ 'not-a-key.pem': 'nothing' });
    const wrong: readonly (readonly [name: string, value: string])[] = [
      ['PORT', String(port)],
      ['PORT', 'abc'],
      ['PORT', '65536'],
      ['HOST', '203.0.113.1'],
      ['DATABASE_URL', `mysql://root:${SECRET}@127.0.0.1/prices`],
      ['DATABASE_URL', `postgres://root:${SECRET}@`],
      ['LOG_LEVEL', 'loud'],
      ['RATE_PER_MINUTE', '-1'],
      ['BODY_BYTES_MAX', '1e9'],
      ['PRICE_BOOK_BYTES', '512MB'],
      ['JWT_SECRET', SECRET],
      ['JWT_JWKS_URL', `http://issuer.example/${SECRET}`],
      ['JWT_PUBLIC_KEY_FILE', join(folder, 'missing.pem')],
      ['JWT_PUBLIC_KEY_FILE', join(folder, 'not-a-key.pem')],
      ['TRUST_PROXY', 'everybody'],
      ['FX_SOURCE', 'ecb; drop table'],
    ];
    // The others differ only in what `test/config/config.test.ts` shows.
    const tried = wrong.filter((_, at) => at % byLength(4, 1) === 0);
    let [started, told] = [0, 0];
    for (const [name, value] of tried) {
      const running = startService(t, { DATABASE_URL: database.url, [name]: value });
      const code = await running.ended;
      const output = `${running.stdout()}${running.stderr()}`;
      t.ok(typeof code === 'number' && code !== 0, `${name}=${value} ends with ${code}`);
      const lines = output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
      t.equal(lines.length, 1, output);
      t.match(output, name);
      t.notOk(output.includes(SECRET), 'no secret is exposed');
      started += code === 0 ? 1 : 0;
      told += output.includes(SECRET) ? 1 : 0;
    }
    return {
      'settings tried': tried.length,
      'started nevertheless': started,
      'secrets exposed': told,
    };
  },
);

fault(
  'F48b',
  'a database that cannot be used, or has another schema',
  'the service starts; if the database cannot be used, it is not ready and requests get 503; ' +
    'with an older schema it is not ready, with a newer one it is; its log contains no secret',
  async (t) => {
    const good = await seededDatabase(t);
    const [behind, ahead] = [
      await testDatabase(t, { seeded: true }),
      await testDatabase(t, { seeded: true }),
    ];
    await behind.pool.query(
      'delete from kysely_migration where name = (select max(name) from kysely_migration)',
    );
    await ahead.pool.query(
      `insert into kysely_migration (name, timestamp) values ('9999_later', '2030-01-01')`,
    );
    const closed = new URL(good.url);
    closed.port = '1';
    const cases: readonly (readonly [what: string, url: string, ready: boolean])[] = [
      ['no server listens', closed.href, false],
      ['no such database', siblingUrl(good.url, 'no_such'), false],
      ['a wrong password', addressAs(good.url, 'nobody', SECRET), false],
      ['a schema that is behind', behind.url, false],
      ['a schema of a later version', ahead.url, true],
    ];
    for (const [what, url, isReady] of cases.slice(byLength(2, 0))) {
      const service = await startServiceProcess(t, { ...good, url });
      const get = (path: string) => send(false, service, { path });
      await until(what, async () => ((await get('/ready')).status === 200) === isReady);
      t.equal((await get('/live')).status, 200);
      if (!isReady && what !== 'a schema that is behind') {
        const answer = await get('/v3/prices');
        t.equal(answer.status, 503, `${what}: ${answer.text}`);
        t.match(codeOf(answer), /_unavailable$/);
      }
      t.notOk(service.running.stderr().includes(SECRET), 'no secret is exposed');
    }
    return { databases: cases.length - byLength(2, 0) };
  },
);
