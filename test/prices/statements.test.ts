import { readFile } from 'node:fs/promises';
import t from 'tap';
import { compiled, statementsText } from '../support/prices/statements.ts';

t.test('the SQL of each shape of query is the one that was reviewed', async (t) => {
  // npm run generate writes the file.
  const reviewed = await readFile(new URL('statements.sql', import.meta.url), 'utf8');
  t.equal(await statementsText(), reviewed);
});

t.test('a list of any length is one parameter of one and the same statement', async (t) => {
  const values = (count: number) => Array.from({ length: count }, (_, index) => `value ${index}`);
  for (const [filter, lengths] of [
    ['codes', [1, 2, 500]],
    ['products', [1, 2, 200]],
    ['priceTypes', [1, 2, 200]],
    ['regions', [1, 2, 200]],
  ] as const) {
    const all = lengths.map((length) => compiled('nickel', { [filter]: values(length) }));
    t.equal(new Set(all.map((each) => each.sql)).size, 1, filter);
    t.equal(new Set(all.map((each) => each.parameters.length)).size, 1, filter);
    const lists = all.map((each) =>
      each.parameters.filter(Array.isArray).map((list) => list.length),
    );
    t.same(
      lists.map((each) => new Set(each)),
      lengths.map((length) => new Set([length])),
    );
  }
});

t.test('nothing that was sent becomes part of a statement', async (t) => {
  const evil = "x'); drop table price; --";
  for (const filters of [{ codes: [evil] }, { products: [evil], regions: [evil, evil] }]) {
    t.notMatch(compiled('nickel', filters).sql, 'drop table');
  }
});

t.test('the order of filters in a request does not change the statement', async (t) => {
  const one = compiled('nickel', { regions: ['a'], products: ['b'] }).sql;
  t.equal(compiled('nickel', { products: ['b'], regions: ['a'] }).sql, one);
});
