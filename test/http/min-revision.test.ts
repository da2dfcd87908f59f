import t from 'tap';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import type { Reply } from '../support/http/service.ts';
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

const ROUTES = [
  '/v3/prices',
  '/v3/prices/nickel/filters',
  '/v3/search?q=nickel',
  '/v3/changes?market=nickel',
  '/v3/calendar?market=nickel',
  '/v3/reference/currencies',
  '/v3/prices/nickel',
];

t.test(
  'a primary answers a revision beyond its newest at its newest, on every route',
  async (t) => {
    const revision = await revisionNow();
    const beyond = later(revision, 1_000_000);
    const { counts } = database.client.link;
    const before = counts.checks;
    for (const url of ROUTES) {
      const { status, headers } = await ask(beyond, url);
      t.equal(status, 200, url);
      t.equal(headers['x-min-revision-unknown'], beyond, url);
    }
    t.ok(counts.checks - before <= 2 * ROUTES.length, 'without a wait');
    const posted = await service.request({
      method: 'POST',
      url: '/v3/prices/nickel',
      headers: { 'x-min-revision': beyond },
      payload: {},
    });
    t.match(posted.headers, {
      'x-min-revision-unknown': beyond,
      'x-data-revision': revision,
    });
    t.match(posted.json.$metadata.warnings, [{ code: 'min_revision_unknown' }]);
  },
);

t.test('a number that clients name never makes a node unready', async (t) => {
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
