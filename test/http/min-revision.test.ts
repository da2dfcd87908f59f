import t from 'tap';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import { type Reply, serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';

const { database, statements, service } = await serviceWithStatementLog(t);

const ask = (min: string | undefined, url = '/v3/prices/nickel?codes=CP-NI-0001'): Promise<Reply> =>
  service.request({
    method: 'GET',
    url,
    headers: min === undefined ? {} : { 'x-min-revision': min },
  });

const revisionNow = async (): Promise<string> =>
  String((await ask(undefined)).headers['x-data-revision']);

/** The revision with another number. */
const later = (text: string, by: number): string => {
  const [prefix, number] = text.split('.');
  return `${prefix}.${Number(number) + by}`;
};

t.test('a revision that is here, and the newest one, cost nothing', async (t) => {
  const revision = await revisionNow();
  for (const min of [revision, 'latest']) {
    const { status, headers } = await ask(min);
    t.equal(status, 200, min);
    t.equal(headers['x-data-revision'], revision);
    t.equal(headers['x-min-revision-unknown'], undefined);
  }
});

t.test('an older revision is answered by the newest one, and looked up once', async (t) => {
  const before = await revisionNow();
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-0001', ['2026-06-29', null, '17000', null]),
  );
  const { status, headers } = await ask(before);
  t.equal(status, 200);
  t.not(headers['x-data-revision'], before);
  statements.length = 0;
  await ask(before);
  t.same(
    statements.filter((each) => /from service s/.test(each)),
    [],
  );
});

t.test('every route with a credential holds to it, and POST does as GET', async (t) => {
  const min = later(await revisionNow(), 5);
  for (const url of [
    '/v3/prices',
    '/v3/prices/nickel/filters',
    '/v3/search?q=nickel',
    '/v3/changes?market=nickel',
    '/v3/reference/currencies',
    '/v3/prices/nickel',
  ]) {
    const { status, json, headers } = await ask(min, url);
    t.same([status, json.code], [503, 'revision_not_here'], url);
    t.match(headers['retry-after'], /^[1-5]$/);
  }
  const posted = await service.request({
    method: 'POST',
    url: '/v3/prices/nickel',
    headers: { 'x-min-revision': min },
    payload: {},
  });
  t.same([posted.status, posted.json.code], [503, 'revision_not_here']);
});

t.test('a revision that is committed within the wait is waited for', async (t) => {
  const patient = await serviceOn(t, database, { MIN_REVISION_WAIT_MS: '10000' });
  const waiting = patient.request({
    method: 'GET',
    url: '/v3/prices/nickel?codes=CP-NI-0001',
    headers: { 'x-min-revision': later(await revisionNow(), 1) },
  });
  const { link } = database.client;
  const before = link.counts.checks;
  await until('the request waits', () => link.counts.checks > before + 3);
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-0001', ['2026-06-28', null, '17001', null]),
  );
  const { status, headers } = await waiting;
  t.equal(status, 200);
  t.equal(headers['x-data-revision'], await revisionNow());
  t.match(headers, { 'x-min-revision-unknown': String }, 'the commit got another id');
});

t.test('a primary stays ready, whatever revision a client names', async (t) => {
  await ask(later(await revisionNow(), 1_000_000));
  await until('the service is ready', async () => (await ask(undefined, '/ready')).status === 200);
  const { json } = await ask(undefined, '/ready');
  t.equal(json.checks.behindSince, null);
});

t.test(
  'a revision of another history gets the newest revision, a header and a warning',
  async (t) => {
    const revision = await revisionNow();
    const [prefix = '', number] = revision.split('.');
    const otherCommit = `${prefix.slice(0, -6)}zzzzzz.${number}`;
    for (const min of ['zzzzzz.1', otherCommit]) {
      const { status, headers, json } = await ask(min);
      t.equal(status, 200, min);
      t.equal(headers['x-min-revision-unknown'], min);
      t.equal(headers['x-data-revision'], revision);
      t.match(json.$metadata.warnings, [{ code: 'min_revision_unknown' }]);
      const csv = await ask(min, '/v3/prices/nickel?codes=CP-NI-0001&format=csv');
      t.match(csv.headers['x-warnings'], 'min_revision_unknown');
    }
    t.same(
      (await ask(revision)).json.$metadata.warnings,
      [],
      'the warning is not cached for others',
    );
  },
);

t.test('another text than a revision is a 400 that names the header', async (t) => {
  for (const min of ['', 'newest', 'abc', `abcdef.${'1'.repeat(19)}`, 'a'.repeat(65), 'LATEST']) {
    const { status, json } = await ask(min);
    t.same([status, json.code], [400, 'malformed_request'], min);
    t.match(json.detail, 'x-min-revision');
  }
  const { status } = await ask(`${await revisionNow()}, latest`);
  t.equal(status, 400, 'twice');
});
