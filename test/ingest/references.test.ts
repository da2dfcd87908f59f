import t from 'tap';
import type { Client } from '../../src/db/client.ts';
import { contentHash } from '../../src/db/content-hash.ts';
import { calculate } from '../calculation/support.ts';
import { serviceOn } from '../support/http/service.ts';
import { conflictsOf, undoBatch } from './ledger/undo-support.ts';
import { loadTable } from './mapping/support.ts';
import {
  CORRECTING,
  describePayable,
  describePrices,
  errorsOf,
  loadingDatabase,
  loadText,
  points,
} from './support/loading.ts';

type Test = Parameters<typeof loadText>[0];

const OLD = { code: 'XX-1', side: 'low', statistic: 'session', element: 'Al' };
const NEW = { code: 'XX-2', side: 'mid', statistic: 'month-average', element: 'Al' };
const first = { ...OLD, validFrom: '2020-01-01' };
const second = { ...NEW, validFrom: '2026-07-01' };

/** Loads references of the payable. */
const refer = (test: Test, client: Client, reference: unknown, options = CORRECTING) =>
  loadText(test, client, 'ndjson', JSON.stringify({ price: { code: 'XX-9', reference } }), options);

t.test('csv, ndjson and a mapping load the same reference of a payable', async (t) => {
  const shared = {
    name: 'Scrap, payable',
    market: 'aluminium',
    product: 'Bauxite',
    priceCategory: 'Spot',
    priceType: 'Payable',
    frequency: 'Weekly',
    unitOfMeasure: 'Percent',
  };
  const names = ['code', ...Object.keys(shared), 'reference'];
  const json = JSON.stringify(first);
  const row = [...['XX-9', ...Object.values(shared)].map((each) => `"${each}"`)];
  const csv = `${names.join()}\n${row.join()},"${json.replaceAll('"', '""')}"\n`;
  const ndjson = JSON.stringify({ price: { code: 'XX-9', ...shared, reference: first } });
  const mapping = `
code: { column: Code }
date: { column: Date }
mid: Price
prices:
  - code: XX-9
${Object.entries(shared)
  .map(([name, value]) => `    ${name}: ${value}\n`)
  .join('')}    reference: { code: xx-1, side: low, element: Al, validFrom: 2020-01-01 }
`;
  const stored = async (load: (client: Client) => Promise<{ readonly status: string }>) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'XX-1');
    t.match(await load(client), { status: 'applied' });
    const { rows } = await pool.query('select code, payable_reference from price order by code');
    return rows;
  };
  const wanted = [
    { code: 'XX-1', payable_reference: null },
    { code: 'XX-9', payable_reference: [first] },
  ];
  t.strictSame(await stored((client) => loadText(t, client, 'csv', csv)), wanted);
  t.strictSame(await stored((client) => loadText(t, client, 'ndjson', ndjson)), wanted);
  const table = 'Code,Date,Price\nXX-9,2026-01-08,72\n';
  t.strictSame(await stored((client) => loadTable(t, client, mapping, table)), wanted);
});

t.test('a reference may be a price of the same load, in any order', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const price = { market: 'aluminium', product: 'Bauxite', priceCategory: 'Spot' };
  const lines = [
    { ...price, code: 'A-9', name: 'A', priceType: 'Payable', unitOfMeasure: 'Percent' },
    { ...price, code: 'B-1', name: 'B', priceType: 'Price', currency: 'USD', unitOfMeasure: 't' },
  ].map((each) => ({ price: { ...each, frequency: 'Weekly' } }));
  Object.assign(lines[0]?.price ?? {}, { reference: { ...first, code: 'b-1' } });
  const text = lines.map((each) => JSON.stringify(each)).join('\n');
  t.match(await loadText(t, client, 'ndjson', text), { status: 'applied' });
  const { rows } = await pool.query(
    `select payable_reference -> 0 ->> 'code' as code from price where code = 'A-9'`,
  );
  t.strictSame(rows, [{ code: 'B-1' }], 'as the price is written');
});

t.test('a reference to no price, or to a payable, is refused with its place', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'XX-1');
  await describePayable(client, 'XX-9');
  await describePayable(client, 'XX-8');
  for (const [reference, code] of [
    [{ ...first, code: 'XX-7' }, 'unknown_code'],
    [{ ...first, code: 'XX-8' }, 'invalid_price'],
    [{ ...first, code: 'XX-9' }, 'invalid_price'],
    [{ ...first, side: 'bid' }, 'invalid_text'],
    [{ ...first, statistic: 'year' }, 'invalid_text'],
    [{ ...first, element: 'nickel metal' }, 'invalid_text'],
    [{ ...first, validFrom: '2026-02-30' }, 'invalid_text'],
    [{ ...first, more: 1 }, 'invalid_text'],
    [[first, first], 'invalid_text'],
    [[], 'invalid_text'],
    ['XX-1', 'invalid_text'],
  ] as const) {
    const report = await refer(t, client, reference);
    t.strictSame(errorsOf(report), [[1, 'reference', code]], JSON.stringify(reference));
  }
  const ofPrice = { price: { code: 'XX-1', reference: { ...first, code: 'XX-1' } } };
  const report = await loadText(t, client, 'ndjson', JSON.stringify(ofPrice), CORRECTING);
  t.strictSame(errorsOf(report), [[1, 'reference', 'invalid_price']], 'a price has none');
});

t.test('a reference is effective from a day, and its past stays in every reader', async (t) => {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePrices(client, 'XX-1', 'XX-2');
  await describePayable(client, 'XX-9');
  const added = await refer(t, client, first);
  const hashed = await contentHash(client);
  t.match(errorsOf(await refer(t, client, second, {} as typeof CORRECTING)), [
    [1, 'reference', 'correction_not_allowed'],
  ]);
  t.match(await refer(t, client, second), {
    status: 'applied',
    preview: { changedPrices: { shown: [{ code: 'XX-9', field: 'reference' }] } },
  });
  const again = { validFrom: first.validFrom, ...OLD };
  t.match(await refer(t, client, again), { status: 'unchanged' }, 'of its own day only');
  t.not((await contentHash(client)).hash, hashed.hash);
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    const service = await serviceOn(t, database, settings);
    const referenceAt = async (revision?: string | null) => {
      const body = { filters: { codes: ['XX-9'] }, options: revision ? { revision } : {} };
      return (await service.post('aluminium', body)).json.data[0].reference;
    };
    t.strictSame(await referenceAt(), { ...second, earlier: [first] });
    t.strictSame(await referenceAt(added.revision), { ...first, earlier: [] });
    const feed = await service.request({ method: 'GET', url: '/v3/changes?codes=XX-9' });
    const changes = feed.json.data.map(
      ({ before, after }: Record<string, { reference: unknown }>) => [
        before?.reference,
        after?.reference,
      ],
    );
    t.strictSame(changes, [
      [undefined, null],
      [null, { ...first, earlier: [] }],
      [
        { ...first, earlier: [] },
        { ...second, earlier: [first] },
      ],
    ]);
    const found = await service.request({ method: 'GET', url: '/v3/search?q=XX-9' });
    t.match(found.json.data, [{ code: 'XX-9', reference: second }]);
  }
  const { rows } = await database.pool.query(
    `select reference_code, reference_side, reference_statistic, reference_element,
      reference_valid_from from published.price order by code`,
  );
  t.match(rows, [{ reference_code: null }, {}, { reference_valid_from: '2026-07-01' }]);
  const whole = [{ ...first, side: 'high' }, second];
  t.match(await refer(t, client, whole), { status: 'applied' }, 'a list replaces all');
  t.match(await refer(t, client, null), { status: 'applied' }, 'null removes all');
});

t.test('an undo leaves no payable with a reference that does not exist', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'XX-1');
  const { rows } = await pool.query('select max(id) as id from load_batch');
  await describePrices(client, 'XX-2');
  await describePayable(client, 'XX-9');
  const { batch } = await refer(t, client, first);
  t.strictSame(await conflictsOf(client, rows[0].id), [batch], 'the payable still needs it');
  const { batch: later } = await refer(t, client, [second]);
  await undoBatch(client, rows[0].id);
  t.strictSame((await conflictsOf(client, later)).length, 1, 'the old reference is gone');
});

/** The number of the newest batch. */
const newestBatch = async ({ pool }: Client): Promise<number> =>
  (await pool.query('select max(id) as id from load_batch')).rows[0].id;

t.test('a reference outlives the undo of a later change of its payable', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePayable(client, 'XX-9');
  await describePrices(client, 'XX-1');
  const price = await newestBatch(client);
  const referred = await refer(t, client, first);
  const renamed = JSON.stringify({ price: { code: 'XX-9', name: 'Of another name' } });
  const { batch } = await loadText(t, client, 'ndjson', renamed, CORRECTING);
  await undoBatch(client, batch);
  t.strictSame(await conflictsOf(client, price), [referred.batch]);
  await undoBatch(client, referred.batch);
  await undoBatch(client, price);
});

t.test('a calculation at an old revision uses a reference that was removed since', async (t) => {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePrices(client, 'XX-1');
  const price = await newestBatch(client);
  await describePayable(client, 'XX-9');
  const values = points('XX-1,2026-01-05,100,110,120,', 'XX-9,2026-01-05,70,71,72,');
  const loaded = await loadText(t, client, 'csv', values);
  const { batch, revision } = await refer(t, client, first);
  const body = { payables: [{ code: 'XX-9' }], period: '2026-01-05' };
  const atRevision = async (settings: Record<string, string>) => {
    const service = await serviceOn(t, database, settings);
    const now = await calculate(service, body);
    const then = await calculate(service, { ...body, options: { revision } });
    return { now: now.status, old: then.text };
  };
  const before = await atRevision({});
  t.match(before, { now: 200, old: '"value":71,' });
  for (const each of [batch, loaded.batch, price]) await undoBatch(client, each);
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    t.strictSame(await atRevision(settings), { now: 400, old: before.old });
  }
});

t.test('a payable has at most 100 references, however many loads bring them', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'XX-1');
  await describePayable(client, 'XX-9');
  const all = Array.from({ length: 100 }, (_, at) => ({ ...OLD, validFrom: `${1900 + at}-01-01` }));
  t.match(await refer(t, client, all), { status: 'applied' });
  t.strictSame(errorsOf(await refer(t, client, first)), [[1, 'reference', 'invalid_text']]);
});
