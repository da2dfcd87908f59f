import { once } from 'node:events';
import { createServer } from 'node:http';
import t from 'tap';
import { newestRevision, numberOf } from '../../src/db/revisions.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { prices, startService } from '../support/process/programs.ts';

/** An address whose metrics are this text. */
async function metricsOf(test: Pick<typeof t, 'teardown'>, text: string): Promise<string> {
  const server = createServer((_, response) => response.end(text)).listen(0, '127.0.0.1');
  test.teardown(() => server.close());
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

t.test('the epoch is renewed unless every node shows that no revision is lost', async (t) => {
  const { url, db, pool } = await testDatabase(t, { seeded: true });
  await inRevision(pool, "update price set name = 'One' where code = 'CP-NI-0001'");
  const { epoch, revision } = await newestRevision(db);
  const had = Number(numberOf(revision));
  const shown = (number: number, of = epoch) =>
    metricsOf(t, `# a comment\nprices_revision_highest_number{epoch="${of}"} ${number}\n`);
  const renew = (...args: string[]) =>
    prices(t, { DATABASE_URL: url }, 'db', 'renew-epoch', '--yes', '--json', ...args);
  const after = ['--if-lost-after', String(had)];

  const service = startService(t, { DATABASE_URL: url, METRICS_PORT: '0', LOG_LEVEL: 'info' });
  await service.until('stderr', 'Server listening');
  const [, port = ''] = /metrics are at http:\/\/127\.0\.0\.1:(\d+)/.exec(service.stderr()) ?? [];
  for (const nodes of [
    [await shown(had)],
    [await shown(had - 1), await shown(had)],
    [await shown(had + 5, 'other1'), await shown(had)],
    [`127.0.0.1:${port}`],
  ]) {
    t.match(await renew(...after, ...nodes), { code: 0, stdout: 'null\n' }, nodes.join(' '));
  }
  t.equal((await newestRevision(db)).epoch, epoch, 'the epoch stays');

  const lost = await renew(...after, await shown(had), await shown(had + 1));
  t.equal(lost.code, 0);
  t.match(JSON.parse(lost.stdout), { before: epoch });
  const second = (await newestRevision(db)).epoch;
  t.not(second, epoch, 'a lost revision renews it');
  let before = second;
  for (const nodes of [
    ['127.0.0.1:1'],
    [await shown(had), '127.0.0.1:1'],
    [await shown(had), await metricsOf(t, 'another page')],
  ]) {
    const silent = await renew(...after, ...nodes);
    t.match(JSON.parse(silent.stdout), { before }, 'so does a node that does not respond');
    before = (await newestRevision(db)).epoch;
  }
  t.match(await renew('--if-lost-after', 'x'), { code: 2 });
});
