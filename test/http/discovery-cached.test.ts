import t from 'tap';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import { keyFor } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';

const LIST = '/v3/prices';
const VALUES = '/v3/prices/nickel/filters';
const OF_MONEY = { currency: 'USD', unit: 'tonne' };

interface ListedMarket {
  readonly slug: string;
  readonly prices: number;
}

const { database, statements, service } = await serviceWithStatementLog(t);

const get = (url: string, of = service, key = of.key) =>
  of.request({ method: 'GET', url, headers: { 'x-api-key': key } });

/** The statements that read prices, without revision checks and key lookups. */
const readsAfter = (count: number): string[] =>
  statements.slice(count).filter((text) => /price_at|join price/.test(text));

for (const url of [LIST, VALUES]) {
  t.test(`${url} is read once for a revision, whichever credential asks`, async (t) => {
    const few = await keyFor(database, ['prices:nickel']);
    const first = await get(url);
    await get(url, service, few);
    const before = statements.length;
    t.equal((await get(url)).text, first.text);
    const { status, json } = await get(url, service, few);
    t.equal(status, 200);
    t.same(readsAfter(before), []);
    if (url === VALUES) return;
    const { data } = json as { data: { slug: string; authorized: boolean }[] };
    const open = data.filter(({ authorized }) => authorized).map(({ slug }) => slug);
    t.same(open, ['nickel'], 'authorized depends on the credential');
  });

  t.test(`many who ask for ${url} at once after a commit share one read`, async (t) => {
    await commit(database.pool, (client) => addPrice(client, { code: `X${url}`, ...OF_MONEY }));
    const before = statements.length;
    const answers = await Promise.all(Array.from({ length: 20 }, () => get(url)));
    t.equal(new Set(answers.map(({ text }) => text)).size, 1);
    t.equal(readsAfter(before).length, 1);
  });
}

t.test('a commit is in the next list, with its price and its day', async (t) => {
  const nickel = async () => {
    const { json } = await get(LIST);
    return (json as { data: ListedMarket[] }).data.find(({ slug }) => slug === 'nickel');
  };
  const before = await nickel();
  const code = 'NEW-DAY';
  await commit(database.pool, (client) => addPrice(client, { code, ...OF_MONEY }));
  t.same(await nickel(), { ...before, prices: (before?.prices ?? 0) + 1 });
  await commit(database.pool, (client) => putPoints(client, code, ['1990-01-05', '1', '2', '3']));
  t.same(await nickel(), { ...before, prices: (before?.prices ?? 0) + 1, firstDate: '1990-01-05' });
});

t.test('a commit is in the next values', async (t) => {
  const counted = async () => {
    const { json } = await get(VALUES);
    const { data } = json as { data: { products: { prices: number }[] } };
    return data.products.reduce((sum, { prices }) => sum + prices, 0);
  };
  const before = await counted();
  await commit(database.pool, (client) => addPrice(client, { code: 'NEW', ...OF_MONEY }));
  t.equal(await counted(), before + 1);
});
