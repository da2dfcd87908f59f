import t from 'tap';
import { SEARCH_ALIASES } from '../../seeds/reference/search-aliases.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { scopeOf } from '../../src/catalog/scopes.ts';
import { comparedForm, wordsOf } from '../../src/prices/search/words.ts';
import { serviceWithStatementLog } from '../support/database/statement-log.ts';
import { keyFor } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { asking, resultsIn } from './support.ts';

const { database, statements, service } = await serviceWithStatementLog(t);
const ask = asking(service);
const QUOTATION = { currency: 'USD', unit: 'tonne' };

/** Texts of every market, and some that are misspelt. */
const { rows } = await database.pool.query<{ slug: string; text: string }>(
  `select distinct on (market.slug) market.slug, price.name as text
    from price join market on market.id = price.market_id order by market.slug, code collate "C"`,
);
const MISSPELT = ['nickle', 'lithum', 'cobolt sulfat', 'grafite', 'aluminim', 'CP-NI-9', 'zz'];
const TEXTS = [
  ...rows.map(({ text }) => text),
  ...MARKETS.flatMap(({ name, prefix }) => [name, `CP-${prefix}-0001`]),
  ...MISSPELT,
];

/** All that a market shows and its other names, in the form in which they are compared. */
async function knownOf(slug: string, name: string): Promise<string> {
  const { json } = await service.post(slug, {});
  const shown = comparedForm(`${name} ${JSON.stringify(json.data)}`);
  const own = Object.entries(SEARCH_ALIASES).filter(([words]) =>
    wordsOf(words).every((word) => shown.includes(word)),
  );
  return comparedForm(`${shown} ${own.flatMap(([, aliases]) => aliases).join(' ')}`);
}

for (const { slug, name, prefix } of MARKETS) {
  t.test(`with the scope of ${slug} no other market shows`, async (t) => {
    const key = await keyFor(database, [scopeOf(slug)]);
    const known = await knownOf(slug, name);
    for (const text of TEXTS) {
      const answer = await ask(text, { key, limit: 100 });
      t.equal(answer.status, 200);
      t.same(
        resultsIn(answer).filter((each) => each.market !== slug),
        [],
        text,
      );
      const { total, count, suggestions } = answer.json.$metadata;
      t.equal(total, count, `${text}: every price that is counted is shown`);
      for (const word of suggestions.flatMap((each: string) => each.split(/[^a-z0-9.]+/))) {
        const isSent = comparedForm(text).includes(word);
        t.ok(isSent || known.includes(word), `${slug}: ${text} suggests ${word}`);
      }
    }
    const own = resultsIn(await ask(`CP-${prefix}-0001`, { key }));
    t.equal(own[0]?.code, `CP-${prefix}-0001`);
  });

  t.test(`commits to other markets change no answer of ${slug}`, async (t) => {
    const key = await keyFor(database, [scopeOf(slug)]);
    const other = slug === 'copper' ? 'nickel' : 'copper';
    const texts = ['unobtainium', 'unobtanium', `SECRET-${prefix}`, 'price', slug];
    const answers = async () => {
      const all = await Promise.all(texts.map((text) => ask(text, { key })));
      return all.map(({ text, headers }) => [text, headers['etag'], headers['x-data-revision']]);
    };
    const before = await answers();
    const code = `SECRET-${prefix}-UNOBTAINIUM`;
    await commit(database.pool, async (client) => {
      await addPrice(client, { code, market: other, ...QUOTATION });
      await putPoints(client, code, ['2026-07-01', '1', '2', '3']);
    });
    const read = statements.length;
    t.same(await answers(), before, 'the same bytes, tags and revisions');
    const reads = statements.slice(read).filter((text) => /latest_point_at/.test(text));
    t.same(reads, [], 'nothing is read for it, so no time is taken either');
    t.match(resultsIn(await ask(code)), [{ code, market: other }], 'a key with its scope finds it');
  });
}
