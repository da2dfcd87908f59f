import t from 'tap';
import type { Scope } from '../../src/catalog/scopes.ts';
import { keyFor, serviceOn } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { calculate, calculationDatabase, resultOf } from './support.ts';

const OWN = { average: 'CP-NI-9001', period: '2026-05' };
const OTHER = { average: 'EXCHANGE-1', period: '2026-06', missing: 'skip' };

/** Headers of one request, or of its key. */
const OF_ONE_REQUEST = /^(date|x-request-id|traceparent|ratelimit.*|x-api-key-expires)$/;

t.test('the answer to a repeated calculation is kept, and has the same bytes', async (t) => {
  const database = await calculationDatabase(t);
  const service = await serviceOn(t, database);
  const plain = await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' });
  const repeats = () => service.app.answers?.state.repeats;
  for (const accept of ['application/json', 'text/csv', 'application/x-ndjson']) {
    const before = repeats() ?? 0;
    const computed = await calculate(plain, OWN, { accept });
    const headersOf = ({ headers }: typeof computed) =>
      Object.keys(headers)
        .filter((name) => !OF_ONE_REQUEST.test(name))
        .map((name) => [name, headers[name]])
        .toSorted();
    for (let turn = 0; turn < 4; turn += 1) {
      const answer = await calculate(service, OWN, { accept });
      t.equal(answer.text, computed.text);
      t.same(headersOf(answer), headersOf(computed));
    }
    t.equal(repeats(), before + 2, 'from the third request on');
    const { etag } = computed.headers;
    const known = await calculate(service, OWN, { accept, 'if-none-match': String(etag) });
    t.same([known.status, known.text], [304, '']);
    t.equal(known.headers['x-data-revision'], computed.headers['x-data-revision']);
  }
});

t.test('a commit ends a kept calculation', async (t) => {
  const database = await calculationDatabase(t);
  const service = await serviceOn(t, database);
  for (let turn = 0; turn < 3; turn += 1) await calculate(service, OWN);
  const before = resultOf(await calculate(service, OWN)).value;
  await commit(database.pool, (client) =>
    putPoints(client, 'CP-NI-9001', ['2026-05-04', '1', '1', '1']),
  );
  t.not(resultOf(await calculate(service, OWN)).value, before);
});

t.test('a kept calculation and a known code are of no use without their scope', async (t) => {
  const database = await calculationDatabase(t);
  const service = await serviceOn(t, database);
  for (let turn = 0; turn < 4; turn += 1) await calculate(service, OWN);
  for (let turn = 0; turn < 4; turn += 1) await calculate(service, OTHER);
  const key = await keyFor(database, ['prices:cobalt' as Scope]);
  t.equal((await calculate(service, OWN, { 'x-api-key': key })).status, 403);
  const unknown = await calculate(service, OTHER, { 'x-api-key': key });
  t.same([unknown.status, unknown.json.errors[0].code], [400, 'unknown_code']);
});

t.test('a code that another market gets later is found there', async (t) => {
  const database = await calculationDatabase(t);
  const service = await serviceOn(t, database);
  t.equal(resultOf(await calculate(service, OTHER)).value, 2);
  await commit(database.pool, async (client) => {
    await client.query(
      "delete from series where price_id = (select id from price where code = 'EXCHANGE-1')",
    );
    await client.query("delete from price where code = 'EXCHANGE-1'");
    await addPrice(client, { code: 'EXCHANGE-1', currency: 'USD', unit: 'tonne' });
    await putPoints(client, 'EXCHANGE-1', ['2026-06-01', '7', '8', '9']);
  });
  t.equal(resultOf(await calculate(service, OTHER)).value, 8);
});
