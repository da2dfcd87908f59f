import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { bodyCheckOf } from '../../src/contract/request/validate.ts';
import { filtersOf, requestSchemasOf, schemasOf } from '../../src/contract/schemas/market.ts';
import { newestRevision } from '../../src/db/revisions.ts';
import { marketPricesReader } from '../../src/prices/market/market-prices.ts';
import { selectionOf } from '../../src/prices/market/query.ts';
import { usedValues, vocabularyReader } from '../../src/prices/market/vocabulary.ts';
import { type Plan, planOf } from '../../src/prices/plan/plan.ts';
import { randomOf } from '../conversion/support.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { fillLarge, LARGE } from '../support/database/large-market.ts';
import { logStatements } from '../support/database/statement-log.ts';
import { valuesOf } from '../support/fuzz/any-request.ts';
import { serviceOn } from '../support/http/service.ts';
import { addPrice, commit } from '../support/prices/sample-writes.ts';

const FROM_SQL = { PRICE_BOOK_BYTES: '0' };
const LIMITS = { codesMax: 500, itemsMax: 200, itemLengthMax: 128, recordsMax: 10 };

/** True for a statement that selects the prices of a market. */
const selects = (statement: string): boolean => statement.includes('price_at');

/** Filters of every market: by name and by id, one or several at once, and by code. */
async function plansOf(database: TestDatabase, random: () => number): Promise<Plan[]> {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const codes = await valuesOf(database);
  const plans: Plan[] = [];
  for (const market of MARKETS) {
    const check = bodyCheckOf(market, schemasOf(market, requestSchemasOf(LIMITS)));
    const filters = filtersOf(market);
    const used = await usedValues(database.db, market, await newestOf(database));
    const some = (name: string): string[] => {
      const values = used.filter(({ filter }) => filter === name);
      return Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
        const { id, name: text } = values.length === 0 ? { id: 'x', name: 'x' } : pick(values);
        return pick([id, id.toUpperCase(), text, text.toUpperCase(), ` ${text} `, `${text}?`]);
      });
    };
    const known = codes.get(market.slug)?.codes ?? [];
    const named = [pick(known), pick(known).toLowerCase(), pick(known), 'x'];
    plans.push(planOf(market, check, {}), planOf(market, check, { filters: { codes: named } }));
    for (const name of filters) {
      const other = pick(filters);
      plans.push(planOf(market, check, { filters: { [name]: some(name) } }));
      plans.push(planOf(market, check, { filters: { [name]: some(name), [other]: some(other) } }));
    }
  }
  return plans;
}

async function newestOf({ db }: TestDatabase): Promise<string> {
  return (await newestRevision(db)).revision;
}

t.test('a cached market selects what the database selects', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { db } = database;
  const revision = await newestOf(database);
  const head = { epoch: 'e', revision, reference: revision, committedAt: '' };
  const marketPrices = marketPricesReader(db);
  const vocabularies = vocabularyReader(db);
  let records = 0;
  let pages = 0;
  for (const plan of await plansOf(database, randomOf(20_261_126))) {
    await marketPrices(plan.market, head);
    const cached = await marketPrices(plan.market, head);
    const vocabulary = await vocabularies(plan.market, head);
    const all = await selectionOf(db, plan, revision).execute();
    const text = JSON.stringify(plan);
    t.same(cached?.select(plan, vocabulary), all, text);
    records += all.length;
    const range = { after: all[0]?.code ?? null, pricesMax: 2 };
    const page = await selectionOf(db, plan, revision, range).execute();
    t.same(cached?.select(plan, vocabulary, range), page, `a page of ${text}`);
    pages += page.length;
  }
  t.ok(records > 500, `${records} records`);
  t.ok(pages > 100, `${pages} records of pages`);
});

t.test('a commit ends the use of the cached prices of its market', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const service = await serviceOn(t, database, FROM_SQL);
  const names = async () => {
    const { json } = await service.post('nickel', { filters: { codes: ['CP-NI-0002'] } });
    return json.data.map((each: { name: string }) => each.name);
  };
  const count = async () => (await service.post('nickel', {})).json.$metadata.count;
  const [before] = await names();
  for (const _ of [1, 2, 3]) t.same(await names(), [before]);
  const all = await count();
  await commit(database.pool, (client) =>
    client.query("update price set name = name || '!' where code = 'CP-NI-0002'"),
  );
  for (const _ of [1, 2, 3]) t.same(await names(), [`${before}!`]);
  await commit(database.pool, (client) =>
    addPrice(client, { code: 'CP-NI-7001', currency: 'USD', unit: 'tonne' }),
  );
  for (const _ of [1, 2, 3]) t.equal(await count(), all + 1);
});

t.test('a market of more than 2,000 prices is selected by the database each time', async (t) => {
  const database = await testDatabase(t);
  const statements = logStatements(database.pool);
  await fillLarge(database, { prices: 2_001, values: 10, points: 1, rateDays: 1 });
  const service = await serviceOn(t, database, FROM_SQL);
  const selections: number[] = [];
  for (const _ of [1, 2, 3, 4]) {
    statements.length = 0;
    const { json } = await service.post(LARGE.slug, { filters: { codes: ['CP-LI-00007'] } });
    t.equal(json.$metadata.count, 1);
    selections.push(statements.filter((each) => selects(each)).length);
  }
  t.same(selections, [1, 2, 1, 1], 'the second request found that it has too many');
});
