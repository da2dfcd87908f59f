import t from 'tap';
import { SEARCH_ALIASES } from '../../seeds/reference/search-aliases.ts';
import { VALUES } from '../../seeds/reference/values.ts';
import { contentHash } from '../../src/db/content-hash.ts';
import { exported, imported } from '../archive/support.ts';
import { testDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';
import { serviceOn } from '../support/http/service.ts';
import { asking, codesIn, resultsIn } from './support.ts';

const database = await testDatabase(t, { seeded: true });
const service = await serviceOn(t, database);
const ask = asking(service);

/** Codes of sample prices by a condition on their names and countries. */
async function codesWhere(condition: string): Promise<string[]> {
  const { rows } = await database.pool.query(
    `select p.code from price p left join dimension_value c on c.id = p.country_id
      where ${condition} order by p.code collate "C"`,
  );
  return rows.map(({ code }) => code);
}

t.test('places, products and exchanges are found by their German and Chinese names', async (t) => {
  for (const [texts, condition] of [
    [['Deutschland', 'deutschland', '德国'], "c.name = 'Germany'"],
    [['Südkorea', 'sudkorea', '韩国'], "c.name = 'South Korea'"],
    [['LME', '伦敦金属交易所'], "p.name ilike '%exchange%london%'"],
    [['SHFE', '上海期货交易所'], "p.name ilike '%exchange%shanghai%'"],
  ] as const) {
    const wanted = await codesWhere(condition);
    t.ok(wanted.length > 0, condition);
    for (const text of texts) {
      const found = codesIn(await ask(text, { limit: 100 }));
      t.same(
        wanted.filter((code) => !found.includes(code)),
        [],
        text,
      );
    }
  }
  for (const text of ['Nickelsulfat', '硫酸镍']) {
    const results = resultsIn(await ask(text));
    t.ok(results.length > 0, text);
    for (const { name, product } of results) {
      t.match(`${name} ${product.name}`, /nickel sulphate/i, `${text}: ${name}`);
    }
  }
});

t.test(
  'another name is found like others: with other words, its beginning, an error',
  async (t) => {
    const all = async (text: string) => codesIn(await ask(text, { limit: 500 }));
    const wanted = await all('cathode shanghai');
    t.ok(wanted.length > 0);
    t.same(await all('kathode 上海'), wanted);
    t.ok((await all('deutschl')).length > 0);
    const mistyped = await ask('deutshland');
    t.same(codesIn(mistyped), codesIn(await ask('deutschland')));
    t.equal(mistyped.json.$metadata.suggestions[0], 'deutschland');
  },
);

t.test('every place of the reference data has other names', (t) => {
  for (const place of Object.values({ ...VALUES.country, ...VALUES.region })) {
    t.ok(SEARCH_ALIASES[place.toLowerCase()], place);
  }
  t.end();
});

t.test('a match by another name shows the attribute that has it', async (t) => {
  const results = resultsIn(await ask('Deutschland', { limit: 500 }));
  const fields = results.flatMap(({ matched }) => matched.map(({ field }) => field));
  t.same([...new Set(fields)], ['name', 'country']);
  for (const { code, matched } of results) {
    t.match(matched, [{ value: /Germany/, match: 'exact' }], code);
  }
});

t.test('a name added in a revision is found at once, and one removed no longer', async (t) => {
  const before = (await contentHash(database.client)).hash;
  t.equal(codesIn(await ask('Alemania')).length, 0);
  const row = "('germany', 'Alemania')";
  await inRevision(database.pool, `insert into search_alias (words, alias) values ${row}`);
  t.same(codesIn(await ask('Alemania')), codesIn(await ask('Deutschland')));
  t.not((await contentHash(database.client)).hash, before);
  await inRevision(database.pool, "delete from search_alias where alias = 'Alemania'");
  t.equal(codesIn(await ask('Alemania')).length, 0);
  t.equal((await contentHash(database.client)).hash, before);
});

t.test('the names of every revision stay, also in an archive', async (t) => {
  const add = "insert into search_alias (words, alias) values ('gabon', 'Gabón')";
  const added = await inRevision(database.pool, add);
  const change = "update search_alias set alias = 'El Gabón' where alias = 'Gabón'";
  const changed = await inRevision(database.pool, change);
  const removed = await inRevision(
    database.pool,
    "delete from search_alias where alias = 'El Gabón'",
  );
  const copy = await imported(t, await exported(t, database.client));
  for (const { pool } of [database, copy]) {
    const names: string[][] = [];
    for (const revision of [added - 1, added, changed, removed]) {
      const { rows } = await pool.query<{ alias: string }>(
        "select alias from search_alias_at($1) where alias like '%Gabón'",
        [revision],
      );
      names.push(rows.map(({ alias }) => alias));
    }
    t.same(names, [[], ['Gabón'], ['El Gabón'], []]);
  }
  t.same(await contentHash(copy.client), await contentHash(database.client));
  const search = asking(await serviceOn(t, copy));
  t.same(codesIn(await search('Deutschland')), codesIn(await ask('Deutschland')));
});
