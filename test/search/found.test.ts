import { readFileSync } from 'node:fs';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';
import { asking, codesIn, resultsIn } from './support.ts';

interface SampleRow {
  readonly code: string;
  readonly name: string;
  readonly market: string;
}

const database = await seededDatabase(t);
const service = await serviceOn(t, database);
const ask = asking(service);
const { rows } = await database.pool.query<SampleRow>(
  `select code, price.name, market.slug as market from price
    join market on market.id = price.market_id order by code collate "C"`,
);

t.test('a price is found first by its code, in any case', async (t) => {
  for (const { code, market } of rows) {
    for (const text of [code, code.toLowerCase(), ` ${code} `]) {
      const [first] = resultsIn(await ask(text, { limit: 3 }));
      t.same([first?.code, first?.market], [code, market], text);
      t.match(first?.matched, [{ field: 'code', value: code, match: 'exact' }]);
    }
  }
});

t.test(
  'the beginning of a code finds all codes that begin with it, before all others',
  async (t) => {
    const answer = await ask('CP-NI-00', { limit: 100 });
    const own = rows.filter(({ code }) => code.startsWith('CP-NI-00')).map(({ code }) => code);
    t.same(codesIn(answer).slice(0, own.length), own);
  },
);

t.test('a price is found by its name, product, alias, formula, place and incoterm', async (t) => {
  for (const { code } of rows.filter((_, at) => at % 5 === 0)) {
    const [price] = resultsIn(await ask(code, { limit: 1 }));
    const named = (field: string) => (price?.[field] as { name: string } | null)?.name ?? '';
    const { name = '', product } = price ?? {};
    const { alias = '', chemicalCode = '' } = product ?? {};
    const country = named('country');
    for (const text of [name, product?.name, alias, chemicalCode, country, named('incoterm')]) {
      if (!text) continue;
      const found = codesIn(await ask(`${text} ${code}`));
      t.equal(found[0], code, `${text} ${code}`);
    }
    t.ok(codesIn(await ask(name, { limit: 100 })).includes(code), name);
  }
});

/** A name with one typing error at a place that moves with the number. */
function mistyped(name: string, number: number): string {
  const letters = [...name].flatMap((letter, at) => (/[a-z]/i.test(letter) ? [at] : []));
  const at = letters[(number * 7) % letters.length] ?? 0;
  const [before, letter, after] = [name.slice(0, at), name[at] ?? '', name.slice(at + 1)];
  const other = letter.toLowerCase() === 'q' ? 'x' : 'q';
  const errors = [
    `${before}${after}`,
    `${before}${other}${after}`,
    `${before}${letter}${other}${after}`,
    `${before}${after[0] ?? ''}${letter}${after.slice(1)}`,
  ];
  return errors[number % errors.length] ?? name;
}

t.test('a name with one typing error is found', async (t) => {
  for (const [number, { code, name }] of rows.entries()) {
    for (const each of [number, number + 1]) {
      const text = mistyped(name, each);
      t.ok(codesIn(await ask(text, { limit: 100 })).includes(code), `${name}: ${text}`);
    }
  }
  for (const [text, product] of [
    ['nickle', 'Nickel'],
    ['lithum', 'Lithium'],
    ['colbalt', 'Cobalt'],
    ['maganese', 'Manganese'],
  ] as const) {
    const [first] = resultsIn(await ask(text));
    t.match(first?.name, product, text);
    t.match(first?.matched, [{ match: 'similar' }]);
  }
});

t.test('words may be in any order, and in any case, accent and spelling', async (t) => {
  const codes = async (text: string) => codesIn(await ask(text, { limit: 100 })).sort();
  const one = await codes('nickel briquette rotterdam');
  t.ok(one.length > 0);
  for (const text of ['ROTTERDAM Nickel Briquette', 'ｎｉｃｋｅｌ brïquette, "rotterdam"']) {
    t.same(await codes(text), one, text);
  }
  t.same(await codes('aluminum'), await codes('aluminium'));
  t.same(await codes('cobalt sulfate'), await codes('cobalt sulphate'));
});

t.test('words come before beginnings, beginnings before parts, parts before errors', async (t) => {
  const kinds = ['exact', 'prefix', 'inside', 'similar'];
  for (const text of ['ni', 'nick', 'ate', 'sulph', 'battery gra', 'nickle', 'euro']) {
    const worst = resultsIn(await ask(text, { limit: 100 })).map(({ matched }) =>
      Math.max(...matched.map(({ match }) => kinds.indexOf(match))),
    );
    t.ok(worst.length > 0, text);
    t.same(worst, worst.toSorted(), text);
  }
  const [first] = resultsIn(await ask('lith'));
  t.match(first?.name, /^Lithium/, 'a name that begins with the text is the first');
});

t.test('total counts what the limit cut off, and the order does not depend on it', async (t) => {
  const all = await ask('price', { limit: 100 });
  const few = await ask('price', { limit: 3 });
  const { count, total } = few.json.$metadata;
  t.same([count, total], [3, all.json.$metadata.total]);
  t.ok(total > 100);
  t.same(codesIn(few), codesIn(all).slice(0, 3));
  t.equal(codesIn(await ask('price')).length, 20);
});

t.test('a text that nothing matches as written has suggestions, each of which finds', async (t) => {
  t.same((await ask('nickel')).json.$metadata.suggestions, []);
  for (const [text, suggested] of [
    ['nickle briquete', 'nickel briquette'],
    ['lithuim carbonat', 'lithium carbonat'],
    ['cobaltt', 'cobalt'],
  ] as const) {
    const { suggestions } = (await ask(text)).json.$metadata;
    t.ok(suggestions.length <= 3, text);
    t.equal(suggestions[0], suggested, text);
    t.ok((await ask(suggested)).json.$metadata.total > 0);
  }
  const { json } = await ask('xyzzyqwv');
  t.same([json.data, json.$metadata.total], [[], 0]);
});

t.test('an answer says that its results only resemble the text', async (t) => {
  for (const [text, approximate] of [
    ['nickel', false],
    ['brique rotterdam', false],
    ['nickle', true],
    // Every word is known, but no price has all of them.
    ['nickel copper rotterdam', true],
    ['xyzzyqwv', false],
    ['%', false],
  ] as const) {
    const { $metadata } = (await ask(text)).json;
    t.equal($metadata.approximate, approximate, text);
    t.ok(!approximate || $metadata.total > 0, text);
  }
});

t.test('a result shows what the record of its price shows', async (t) => {
  for (const { code, market } of rows.filter((_, at) => at % 9 === 0)) {
    const [result] = resultsIn(await ask(code, { limit: 1 }));
    const { json } = await service.post(market, { filters: { codes: [code] } });
    const { specification, assessmentLaunchedAt, series, ...others } = json.data[0];
    const { observes, vatCountry, ...record } = others;
    t.ok(specification && series && observes && assessmentLaunchedAt !== undefined);
    t.ok(vatCountry !== undefined);
    const { matched, market: slug, ...shown } = result ?? { matched: null, market: null };
    t.equal(slug, market);
    t.same(shown, record, code);
  }
});

t.test('the documented example is what the service answers', async (t) => {
  const page = readFileSync(new URL('../../docs/search.md', import.meta.url), 'utf8');
  const [, text = ''] = /--data-urlencode 'q=([^']+)'/.exec(page) ?? [];
  const documented = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? '');
  const { json } = await ask(text);
  const { revision, asOf } = json.$metadata;
  t.same(json, { ...documented, $metadata: { ...documented.$metadata, revision, asOf } });
});
