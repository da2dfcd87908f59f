import { readFileSync } from 'node:fs';
import t from 'tap';
import { serviceOn } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { differenceOf } from './recompute.ts';
import { calculate, calculationDatabase, resultOf, violationsOf } from './support.ts';

const page = readFileSync(new URL('../../docs/calculations.md', import.meta.url), 'utf8');
const database = await calculationDatabase(t);

/** Sets the references of a payable. */
const refer = (code: string, ...references: readonly object[]): Promise<unknown> =>
  commit(database.pool, (client) =>
    client.query('update price set payable_reference = $2 where code = $1', [
      code,
      JSON.stringify(references),
    ]),
  );

const DAY = '2026-06-08';
const asTexts = { options: { decimalsAsText: true } };

await commit(database.pool, async (client) => {
  const payable = { currency: null, unit: 'percent', market: 'recycling' } as const;
  await addPrice(client, { code: 'CP-RC-9001', ...payable });
  await addPrice(client, { code: 'CP-RC-9002', ...payable });
  await addPrice(client, { code: 'CP-NI-9002', currency: 'USD', unit: 'tonne' });
  await addPrice(client, { code: 'CP-CO-9005', currency: 'USD', unit: 'pound', market: 'cobalt' });
  await putPoints(client, 'CP-NI-9002', [DAY, '16200', '16250', '16300']);
  await putPoints(client, 'CP-CO-9005', [DAY, '16.00', '16.50', '16.75']);
  await putPoints(
    client,
    'CP-RC-9001',
    ['2026-06-01', '70', '71', '72'],
    ['2026-06-04', '70', '72', '74'],
    [DAY, '72', '73', '74'],
  );
  await putPoints(client, 'CP-RC-9002', [DAY, '60', '61', '62']);
});
const NICKEL = { code: 'CP-NI-9002', side: 'mid', statistic: 'session', element: 'Ni' };
const COBALT = { code: 'CP-CO-9005', side: 'low', statistic: 'session', element: 'Co' };
await refer('CP-RC-9001', { ...NICKEL, validFrom: '2020-01-01' });
await refer('CP-RC-9002', { ...COBALT, validFrom: '2020-01-01' });
const service = await serviceOn(t, database);

t.test('each figure of the table of the page is that of the short form', async (t) => {
  const [, table = ''] = page.split(
    '| Payable | Reference | Content | Result |\n|---|---|---|---|\n',
  );
  const rows = [...table.matchAll(/^\| ([^|]*) \| ([^|]*) \| ([^|]*) ?\| ([\d.]+) \|$/gm)];
  t.equal(rows.length, 3);
  for (const [, payable = '', reference = '', assay = '', figure = ''] of rows) {
    const content = assay.trim() === '' ? {} : { content: assay.trim() };
    const code = payable.startsWith('73') ? 'CP-RC-9001' : 'CP-RC-9002';
    const body = {
      payables: [{ code, ...content }],
      period: 'S',
      anchor: DAY,
      result: { decimals: 2 },
      ...asTexts,
    };
    const result = resultOf(await calculate(service, body));
    t.equal(Number(result.value), Number(figure), `${payable} of ${reference}`);
    const [side = ''] = reference.split(' ');
    t.equal(result.inputs.reference1.side, side);
    t.match(reference, String(Number(result.inputs.reference1.sessions[0].published)));
    t.equal(differenceOf(result), null);
  }
});

t.test('the answer has the formula, and the element of each content', async (t) => {
  const body = {
    payables: [
      { code: 'CP-RC-9001', content: '18', side: 'low' },
      { code: 'cp-rc-9002', content: '9' },
    ],
    ...{ period: 'S', anchor: DAY, unitOfMeasure: 't', ...asTexts },
  };
  const result = resultOf(await calculate(service, body));
  t.equal(result.formula, 'payable1 * reference1 * content1 + payable2 * reference2 * content2');
  t.same(Object.keys(result.inputs), [
    ...['payable1', 'reference1', 'content1', 'payable2', 'reference2', 'content2'],
  ]);
  const { payable1, reference2, content1, content2 } = result.inputs;
  t.match([payable1.side, reference2.side, reference2.unit], ['low', 'low', 'USD/t']);
  t.match([content1.note, content2.note], ['Ni', 'Co']);
  t.equal(differenceOf(result), null);
});

t.test('the figure of the day before a change uses the old reference', async (t) => {
  const { rows } = await database.pool.query('select revision_text(max(number)) from revision');
  const before = rows[0].revision_text;
  const later = { ...NICKEL, code: 'CP-NI-9001', side: 'high', validFrom: '2026-06-04' };
  await refer('CP-RC-9001', { ...NICKEL, validFrom: '2020-01-01' }, later);
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    const reader = await serviceOn(t, database, settings);
    const at = async (anchor: unknown, more: object = {}) => {
      const body = { payables: [{ code: 'CP-RC-9001' }], period: 'S', anchor, ...more };
      return calculate(reader, body);
    };
    const codeAt = async (anchor: string, more: object = {}) => {
      const { reference1 } = resultOf(await at(anchor, more)).inputs;
      return `${reference1.code} ${reference1.side}`;
    };
    const all = { referencePeriod: '2026' };
    t.equal(await codeAt('2026-06-03', all), 'CP-NI-9002 mid', 'the day of the payable counts');
    t.equal(await codeAt('2026-06-04', all), 'CP-NI-9001 high');
    const old = { ...all, options: { revision: before } };
    t.equal(await codeAt('2026-06-04', old), 'CP-NI-9002 mid', 'an old revision has the old one');
    t.same(violationsOf(await at('2026-06-04', { ...all, period: 'M' })), [
      '/period reference_unknown',
    ]);
    const series = { from: '2026-06', to: '2026-07', every: 'month' };
    const { data } = (await at(series, all)).json;
    const codes = data.map(({ anchor, inputs }: { anchor: string; inputs: Inputs }) => [
      anchor,
      inputs.reference1.code,
    ]);
    t.same(codes, [
      ['2026-06-01', 'CP-NI-9002'],
      ['2026-07-01', 'CP-NI-9001'],
    ]);
  }
});

t.test(
  'a month before the first session of the payable has no figure, and is not refused',
  async (t) => {
    const anchor = { from: '2026-05', to: '2026-06', every: 'month' };
    const body = { payables: [{ code: 'CP-RC-9002' }], period: 'M', anchor };
    const { json } = await calculate(service, body);
    t.match(json.data, [{ value: null, reasons: [{ code: 'no_sessions' }] }, { value: 9.76 }]);
  },
);

t.test('a series whose references change their unit needs one unit', async (t) => {
  const code = 'CP-RC-9004';
  await commit(database.pool, async (client) => {
    await addPrice(client, { code, currency: null, unit: 'percent', market: 'recycling' });
    await putPoints(client, code, ['2026-05-29', '70', '71', '72'], [DAY, '72', '73', '74']);
  });
  const changed = { ...COBALT, validFrom: '2026-06-01' };
  await refer(code, { ...NICKEL, validFrom: '2020-01-01' }, changed);
  const series = { from: '2026-05', to: '2026-06', every: 'month' };
  const ask = (more: object) =>
    calculate(service, {
      ...{ payables: [{ code }], period: 'M', referencePeriod: DAY, anchor: series },
      ...more,
    });
  const refused = await ask({});
  t.same(violationsOf(refused), ['/unitOfMeasure unit_mismatch']);
  t.match(refused.json.errors[0].detail, /some anchors give USD\/t, and of others USD\/lb;/);
  const { data } = (await ask({ unitOfMeasure: 'lb', result: { decimals: 2 } })).json;
  t.match(data, [
    { value: 5.23, unit: 'USD/lb' },
    { value: 11.68, unit: 'USD/lb' },
  ]);
});

t.test('the reference is that of the day of a substitute', async (t) => {
  const code = 'CP-RC-9003';
  await commit(database.pool, async (client) => {
    await addPrice(client, { code, currency: null, unit: 'percent', market: 'recycling' });
    await putPoints(
      client,
      code,
      ['2026-06-02', null, '70', null],
      ['2026-06-05', null, '71', null],
    );
    await client.query(
      `insert into price_calendar (price_id, calendar_id)
        select (select id from price where code = $1), calendar_id
        from price_calendar c join price p on p.id = c.price_id where p.code = 'CP-CU-0001'`,
      [code],
    );
  });
  const changed = { ...NICKEL, code: 'CP-NI-9001', validFrom: '2026-06-03' };
  await refer(code, { ...NICKEL, validFrom: '2020-01-01' }, changed);
  const ask = (period: string, missing: string) =>
    calculate(service, { payables: [{ code }], period, missing, referencePeriod: '2026' });
  for (const [missing, used, reference] of [
    ['previous', '2026-06-02', 'CP-NI-9002'],
    ['next', '2026-06-05', 'CP-NI-9001'],
  ] as const) {
    const { payable1, reference1 } = resultOf(await ask('2026-06-03', missing)).inputs;
    t.match(payable1.sessions, [{ date: used, substituteFor: '2026-06-03' }]);
    t.equal(reference1.code, reference, missing);
  }
  t.same(violationsOf(await ask('2026-06-03/2026-06-05', 'previous')), [
    '/period reference_unknown',
  ]);
  t.same(violationsOf(await ask('2026-06-03', 'refuse')), ['/missing sessions_missing']);
});

interface Inputs {
  readonly reference1: { readonly code: string };
}
