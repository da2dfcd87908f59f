import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import { serviceOn } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { asking, codesIn, resultsIn } from './support.ts';

const QUOTATION = { currency: 'USD', unit: 'tonne' };
const { database, statements, service } = await serviceWithStatementLog(t);
const ask = asking(service);

/** The statements that read prices for the search: one for each market that is read. */
const readsAfter = (count: number): number =>
  statements.slice(count).filter((text) => /limit.*latest_point_at/s.test(text)).length;

t.test('each market is read once for a revision, whatever is asked for', async (t) => {
  await ask('nickel');
  const before = statements.length;
  const texts = ['copper', 'nickle', 'CP-NI-0003', 'price', 'x'];
  await Promise.all(texts.map((text) => ask(text)));
  t.equal(readsAfter(before), 0);
});

t.test('many who ask at once after a commit share one read of the changed market', async (t) => {
  await commit(database.pool, (client) => addPrice(client, { code: 'AT-ONCE', ...QUOTATION }));
  const before = statements.length;
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask('at-once')));
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.match(resultsIn(answers[0] ?? (await ask('at-once')))[0]?.code, 'AT-ONCE');
  t.equal(readsAfter(before), 1);
});

for (const [how, env] of [
  ['with the price book', {}],
  ['without it', { PRICE_BOOK_BYTES: '0' }],
] as const) {
  t.test(`a commit is in the next answer, ${how}`, async (t) => {
    const own = await testDatabase(t, { seeded: true });
    const search = asking(await serviceOn(t, own, env));
    const code = 'FRESHLY-ADDED';
    const before = await search(code);
    t.notOk(codesIn(before).includes(code));
    await commit(own.pool, (client) => addPrice(client, { code, ...QUOTATION }));
    const added = await search(code);
    t.equal(codesIn(added)[0], code);
    t.not(added.json.$metadata.revision, before.json.$metadata.revision);
    t.equal(resultsIn(added)[0]?.['lastAssessedAt'], null);
    await commit(own.pool, (client) => putPoints(client, code, ['2026-07-01', '1', '2', '3']));
    t.equal(resultsIn(await search(code))[0]?.['lastAssessedAt'], '2026-07-01');
    await commit(own.pool, (client) =>
      client.query(`update price set name = 'Quite another name' where code = $1`, [code]),
    );
    t.equal(codesIn(await search('quite another name'))[0], code);
    await commit(own.pool, (client) =>
      client.query(
        `update product set name = 'Renamedium', match_key = 'renamedium'
        where id = (select product_id from price where code = $1)`,
        [code],
      ),
    );
    t.ok(codesIn(await search('renamedium', { limit: 100 })).includes(code));
  });
}

t.test('with and without the price book answers are the same bytes', async (t) => {
  const plain = asking(await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' }));
  for (const text of ['nickel', 'lithum', 'CP-CU-0001', 'price']) {
    t.equal((await plain(text)).text, (await ask(text)).text, text);
  }
});

t.test('an empty database answers, and finds nothing', async (t) => {
  const empty = asking(await serviceOn(t, await testDatabase(t)));
  const { status, json } = await empty('nickel');
  t.equal(status, 200);
  t.match(json, { $metadata: { count: 0, total: 0, suggestions: [] }, data: [] });
});
