import t from 'tap';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import { type Reply, serviceOn } from '../support/http/service.ts';
import { commit, putPoints, putRates } from '../support/prices/sample-writes.ts';

const VARY = 'accept, accept-encoding, x-api-key, authorization';
const SERIES = 'codes=CP-NI-0001&includeSeries=true';
const CONVERTED = `${SERIES}&currency=EUR`;

const { database, statements, service } = await serviceWithStatementLog(t);

const get = (query: string, headers = {}, method = 'GET', of = service): Promise<Reply> =>
  of.request({ method, url: `/v3/prices/nickel?${query}`, headers });

const tagOf = async (query: string, headers = {}, of = service): Promise<string> => {
  const tag = (await get(query, headers, 'GET', of)).headers['etag'];
  if (tag === undefined) throw new Error(`no ETag: ${query}`);
  return tag;
};

const isNew = async (query: string, tag: string): Promise<boolean> => {
  const { status } = await get(query, { 'if-none-match': tag });
  return status === 200;
};

t.test(
  'an answer to GET has a strong tag, may be cached, and is validated each time',
  async (t) => {
    const { headers } = await get(SERIES);
    t.match(headers['etag'], /^"[\w-]{43}"$/);
    t.equal(headers['cache-control'], 'private, no-cache');
    t.equal(headers['vary'], VARY);
    const known = await get(SERIES, { 'if-none-match': headers['etag'] });
    t.same([known.status, known.text], [304, '']);
    for (const name of ['etag', 'cache-control', 'vary', 'x-data-revision']) {
      t.equal(known.headers[name], headers[name], name);
    }
    const head = await get(SERIES, { 'if-none-match': headers['etag'] }, 'HEAD');
    t.equal(head.status, 304);
  },
);

t.test('If-None-Match is a list, compared weakly, or a star', async (t) => {
  const tag = await tagOf(SERIES);
  for (const known of [`"a", W/"b" ,${tag}`, `W/${tag}`, `"x,y", ${tag}, "z"`, '*', ' * ']) {
    t.equal((await get(SERIES, { 'if-none-match': known })).status, 304, known);
  }
  for (const known of ['', '"a"', tag.slice(1, -1), '"*"', '*, "a"']) {
    t.equal((await get(SERIES, { 'if-none-match': known })).status, 200, known);
  }
  for (const query of ['currency=ABC', 'codes=none&strict=true', 'regoins=x']) {
    const { status, headers } = await get(query, { 'if-none-match': '*' });
    t.equal(status, 400, 'a refusal matches no tag');
    t.equal(headers['etag'], undefined);
    t.equal(headers['cache-control'], 'no-store');
  }
});

t.test('a 304 reads no price and no series', async (t) => {
  for (const each of [service, await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' })]) {
    for (const query of [SERIES, CONVERTED, 'regions=Europe&includeSummary=true']) {
      const tag = await tagOf(query, {}, each);
      await each.app.book?.settled();
      const before = statements.length;
      const { status } = await get(query, { 'if-none-match': tag }, 'GET', each);
      t.equal(status, 304);
      const executed = statements.slice(before);
      t.same(
        executed.filter((text) => /series|price_at|latest_point|dimension/.test(text)),
        [],
      );
    }
  }
  t.ok(statements.some((each) => /copy .*series_at/s.test(each)));
});

t.test('HEAD reads no series', async (t) => {
  await service.app.book?.settled();
  const before = statements.length;
  t.equal((await get(SERIES, {}, 'HEAD')).status, 200);
  t.same(
    statements.slice(before).filter((each) => /copy/.test(each)),
    [],
  );
});

t.test('other bytes have another tag: request, format, spelling, past', async (t) => {
  const queries = [
    SERIES,
    CONVERTED,
    `${CONVERTED}&decimals=3`,
    `${SERIES}&aggregate=month:average`,
    `${SERIES}&aggregate=month:last`,
    `${SERIES}&dateFrom=2026-01-01`,
    `${SERIES}&dateTo=2026-01-01`,
    `${SERIES}&format=csv`,
    `${SERIES}&format=ndjson`,
    'codes=cp-ni-0001&includeSeries=true',
    'codes=CP-NI-0001&codes=no&includeSeries=true',
    'codes=no&codes=CP-NI-0001&includeSeries=true',
    'codes=CP-NI-0001',
    'products=a&products=b',
    'products=b&products=a',
    'products=ab',
    'regions=a&products=b',
  ];
  const tags = await Promise.all(queries.map((query) => tagOf(query)));
  t.equal(new Set(tags).size, queries.length);
  t.equal(await tagOf(`format=csv&${SERIES}`), await tagOf(SERIES, { accept: 'text/csv' }));
  const url = '/v3/prices/copper?products=a&products=b';
  t.notOk(tags.includes((await service.request({ method: 'GET', url })).headers['etag'] ?? ''));
});

t.test('a commit of the market makes new tags, one of another market does not', async (t) => {
  const plain = await tagOf(SERIES);
  const converted = await tagOf(CONVERTED);
  const { $metadata } = (await get(SERIES)).json;
  const past = `${SERIES}&revision=${$metadata.revision}`;
  const pastTag = await tagOf(past);
  const point = ['2026-07-30', null, '1', null] as const;
  await commit(database.pool, (client) => putPoints(client, 'CP-CU-0001', point));
  t.equal(await isNew(SERIES, plain), false);
  await commit(database.pool, (client) => putRates(client, 'SAMPLE', 'USD', { '2026-07-02': '2' }));
  t.equal(await isNew(SERIES, plain), false, 'rates are nothing to what is not converted');
  t.equal(await isNew(CONVERTED, converted), true);
  await commit(database.pool, (client) => putPoints(client, 'CP-NI-0001', point));
  t.equal(await isNew(SERIES, plain), true);
  t.equal(await isNew(past, pastTag), false, 'the past does not change');
});

t.test('another source of rates is another tag', async (t) => {
  await commit(database.pool, async (client) => {
    for (const source of ['ECB', 'FED']) {
      await putRates(client, source, 'CNY', { '2026-06-01': source === 'ECB' ? '8' : '7' });
    }
  });
  const fed = await serviceOn(t, database, { FX_SOURCE: 'FED' });
  t.equal(await tagOf(SERIES, {}, fed), await tagOf(SERIES));
  t.not(await tagOf(CONVERTED, {}, fed), await tagOf(CONVERTED));
});

t.test('a tag of another epoch gives a full answer', async (t) => {
  const tag = await tagOf(SERIES);
  t.equal(await isNew(SERIES, tag), false);
  await database.pool.query("update service set epoch = 'renewed'");
  t.equal(await isNew(SERIES, tag), true);
});

t.test('answers to POST are never cached', async (t) => {
  const { headers } = await service.post('nickel', {});
  t.equal(headers['cache-control'], 'no-store');
  t.equal(headers['etag'], undefined);
  const { status } = await service.request({
    method: 'POST',
    url: '/v3/prices/nickel',
    payload: {},
    headers: { 'if-none-match': '*' },
  });
  t.equal(status, 200);
});
