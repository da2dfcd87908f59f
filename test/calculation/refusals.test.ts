import fc from 'fast-check';
import t from 'tap';
import { scopeOf } from '../../src/catalog/scopes.ts';
import { keyFor } from '../support/http/service.ts';
import { calculate, calculationService, violationsOf } from './support.ts';

const { service, database } = await calculationService(t);

const NICKEL = { code: 'CP-NI-9001', period: 'M-1' };
const NUMBER = { value: '2', unit: 'USD/t' };
const ANCHOR = { anchor: '2026-06-24' };

const PAYABLE = { code: 'CP-RC-0001' };
const ASSAYED = { ...PAYABLE, content: '100' };
const BLACK_MASS = [1, 2, 3, 4, 5, 6, 7].map((at) => ({ ...ASSAYED, code: `CP-RC-000${at}` }));
const TODAY = { period: 'S', ...ANCHOR };

const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, { value: '1' }]));

const of = (input: object, more: object = {}) => ({ inputs: { x: input }, ...ANCHOR, ...more });

/** Bodies, each with its violation and the detail. */
const CASES: readonly (readonly [body: unknown, violation: string, detail: RegExp])[] = [
  [[], ' wrong_type', /Must be an object/],
  [{}, ' invalid_format', /Must have inputs/],
  [{ inputs: {} }, '/inputs too_few_items', /1 to 20 inputs/],
  [{ inputs: many(21), formula: 'n0' }, '/inputs too_many_items', /1 to 20 inputs/],
  [{ inputs: many(2) }, '/formula invalid_formula', /Must have a formula/],
  [{ inputs: many(2), formula: 'n0' }, '/inputs/n1 invalid_formula', /does not name this input/],
  [{ inputs: many(1), formula: 'n0 +' }, '/formula invalid_formula', /^Character 5/],
  [{ inputs: many(1), formula: 'x'.repeat(513) }, '/formula too_long', /512/],
  [{ inputs: { '1x': NUMBER } }, '/inputs/1x invalid_format', /named by a letter/],
  [{ inputs: { max: NUMBER } }, '/inputs/max invalid_format', /are functions/],
  [{ inputs: { x: 1 } }, '/inputs/x wrong_type', /Must be an object/],
  [{ inputs: { x: {} } }, '/inputs/x invalid_format', /one of code/],
  [of({ ...NUMBER, code: 'a' }), '/inputs/x invalid_format', /one of code/],
  [of(NUMBER, { formule: 'x' }), '/formule unknown_field', /did you mean formula/],
  [of({ ...NUMBER, vat: 'exclude' }), '/inputs/x/vat unknown_field', /no member vat/],
  [of({ value: 2 }), '/inputs/x/value wrong_type', /a string/],
  [of({ value: '1e5' }), '/inputs/x/value invalid_format', /a decimal as a text/],
  [of({ value: '1', unit: 'USD/furlong' }), '/inputs/x/unit unknown_unit', /"furlong"/],
  [of({ value: '1', unit: '%/t' }), '/inputs/x/unit unknown_unit', /stands alone/],
  [of({ code: 'CP-NI-9001' }), '/inputs/x/period invalid_format', /Must have a period/],
  [of({ ...NICKEL, period: 'last' }), '/inputs/x/period invalid_format', /no period/],
  [of({ ...NICKEL, side: 'best' }), '/inputs/x/side out_of_range', /low, mid, high/],
  [of({ ...NICKEL, vat: 'exclude' }), '/inputs/x/vat vat_not_included', /vatCountry is null/],
  [
    of({ code: 'CP-CO-9002', period: 'S', vat: 'exclude' }, { anchor: '2026-06-24' }),
    '/inputs/x/vat vat_not_included',
    /A payable/,
  ],
  [of({ ...NICKEL, rounding: {} }), '/inputs/x/rounding unknown_field', /needs the decimals/],
  [
    of({ ...NICKEL, rounding: { sessions: 1 } }),
    '/inputs/x/rounding/sessions unknown_field',
    /did/,
  ],
  [
    of({ ...NICKEL, side: 'low', method: 'mean-of-mids' }),
    '/inputs/x/method unknown_field',
    /the side mid/,
  ],
  [
    of({ ...NICKEL, method: 'mid-of-rounded-averages' }),
    '/inputs/x/method unknown_field',
    /add rounding.average/,
  ],
  [of({ ...NICKEL, currency: 'QQQ' }), '/inputs/x/currency unknown_currency', /"QQQ"/],
  [of({ ...NICKEL, unitOfMeasure: 'furlong' }), '/inputs/x/unitOfMeasure unknown_unit', /furlong/],
  [of({ ...NICKEL, unitOfMeasure: 'kWh' }), '/inputs/x/code unconvertible', /another kind/],
  [
    of({ code: 'CP-CO-9002', period: 'S', currency: 'CNY' }),
    '/inputs/x/code unconvertible',
    /A payable is a percentage/,
  ],
  [of({ rate: 'CNY', period: 'M' }), '/inputs/x/rate invalid_format', /two currencies/],
  [of({ rate: 'CNY/QQQ', period: 'M' }), '/inputs/x/rate unknown_currency', /"QQQ"/],
  [of({ rate: 'USD/USD', period: 'M' }), '/inputs/x/rate unconvertible', /no rate of USD\/USD/],
  [of({ rate: 'KRW/USD', period: 'M' }), '/inputs/x/rate unconvertible', /no rate of KRW/],
  [{ inputs: { x: NICKEL } }, '/anchor invalid_format', /M-1 counts from an anchor/],
  [of(NUMBER, { anchor: '2026-02-30' }), '/anchor invalid_format', /no day 2026-02-30/],
  [of(NUMBER, { anchor: 5 }), '/anchor wrong_type', /a day, or an object/],
  [
    of(NUMBER, { anchor: { from: '2026-01', to: '2026-13', every: 'month' } }),
    '/anchor/to invalid_format',
    /2026-13/,
  ],
  [
    of(NUMBER, { anchor: { from: '1990-01', to: '2026-01', every: 'month' } }),
    '/anchor out_of_range',
    /1 to 400 anchors, not 433/,
  ],
  [of(NUMBER, { result: { unit: 'USD/lb' } }), '/result/unit unit_mismatch', /gives USD\/t, not/],
  [of(NUMBER, { result: { mode: 'up' } }), '/result/mode unknown_field', /add decimals/],
  [of(NUMBER, { result: { decimals: 11 } }), '/result/decimals out_of_range', /at most 10/],
  [of(NUMBER, { formula: 'x + 1' }), '/formula unit_mismatch', /^Character 5/],
  [of(NUMBER, { formula: 'x / (x - x)' }), '/formula division_by_zero', /anchor is 2026-06-24/],
  [of(NUMBER, { options: { limit: 1 } }), '/options/limit unknown_field', /no member limit/],
  [
    of(NUMBER, { options: { asOf: '2026-01-01T00:00:00Z', revision: 'k3f9a1w2c7xe.1' } }),
    '/options/asOf unknown_field',
    /omit one/,
  ],
  [{ average: 'CP-NI-9001', formula: 'x', period: '2026' }, '/formula unknown_field', /no member/],
  [{ average: 'CP-NI-0', period: '2026' }, '/average unknown_code', /"CP-NI-0" matches nothing/],
  [
    { convertBasis: 'LCE', code: 'CP-CO-9001', period: '2019' },
    '/convertBasis unconvertible',
    /holds no Li/,
  ],
  [{ payables: [], period: 'S', ...ANCHOR }, '/payables too_few_items', /1 to 6 payables/],
  [{ payables: BLACK_MASS, ...TODAY }, '/payables too_many_items', /1 to 6 payables/],
  [{ payables: PAYABLE, ...TODAY }, '/payables wrong_type', /an array/],
  [{ payables: BLACK_MASS.slice(5), ...ANCHOR }, '/period invalid_format', /Must have a period/],
  [{ payables: [PAYABLE], period: 'S' }, '/anchor invalid_format', /S counts from an anchor/],
  [
    { payables: [PAYABLE], period: '2026-05', referencePeriod: 'M' },
    '/anchor invalid_format',
    /M counts from an anchor/,
  ],
  [
    { payables: [PAYABLE], ...TODAY, referencePeriod: 'x' },
    '/referencePeriod invalid_format',
    /no period/,
  ],
  [
    { payables: [{ ...PAYABLE, content: '18 %' }], ...TODAY },
    '/payables/0/content invalid_format',
    /a percentage as a text/,
  ],
  [
    { payables: [{ ...PAYABLE, contents: '18' }], ...TODAY },
    '/payables/0/contents unknown_field',
    /did you mean content/,
  ],
  [{ payables: [{}], ...TODAY }, '/payables/0 invalid_format', /Must have code/],
  [{ payables: [{ code: 'CP-RC-0' }], ...TODAY }, '/payables/0/code unknown_code', /"CP-RC-0"/],
  [
    { payables: [ASSAYED, { ...ASSAYED, code: 'CP-CO-9002' }], ...TODAY },
    '/payables/1/code reference_unknown',
    /No reference of CP-CO-9002 is known; name the reference/,
  ],
  [
    { payables: [{ code: 'CP-NI-0001' }], ...TODAY },
    '/payables/0/code reference_unknown',
    /is a price, not a payable/,
  ],
  [
    { payables: [{ code: 'CP-CO-9003' }], period: '2019-12' },
    '/payables/0/code reference_unknown',
    /No reference of CP-CO-9003 is known on 2019-12-02/,
  ],
  [
    { payables: [{ code: 'CP-NI-0011' }], ...TODAY },
    '/referencePeriod invalid_format',
    /average of a month; set referencePeriod to its period, such as M-1/,
  ],
  ...['S', '2026-06-01'].map((referencePeriod) => {
    const body = { payables: [{ code: 'CP-NI-0011' }], ...TODAY, referencePeriod };
    return [body, '/referencePeriod invalid_format', /average of a month/] as const;
  }),
  [
    { payables: [{ ...PAYABLE, content: '100.01' }], ...TODAY },
    '/payables/0/content invalid_format',
    /at most 100/,
  ],
  [
    { payables: [ASSAYED, { ...ASSAYED, code: 'cp-rc-0001' }], ...TODAY },
    '/payables/1/code invalid_format',
    /name each payable once/,
  ],
  [
    { payables: [ASSAYED, { code: 'CP-RC-0002' }], ...TODAY },
    '/payables/1/content invalid_format',
    /Each of several payables needs its content/,
  ],
  [
    { payables: [ASSAYED, { code: 'CP-RC-0002', content: '9' }], ...TODAY },
    '/unitOfMeasure unit_mismatch',
    /^The references are in USD\/t and USD\/lb, .*set unitOfMeasure and currency/,
  ],
  [{ payables: [PAYABLE], ...TODAY, currency: 'QQQ' }, '/currency unknown_currency', /"QQQ"/],
];

t.test('a request that breaks a rule is refused with the place and the code', async (t) => {
  for (const [body, violation, detail] of CASES) {
    const answer = await calculate(service, body);
    t.equal(answer.status, 400, violation);
    t.same(violationsOf(answer), [violation], JSON.stringify(body));
    t.match(answer.json.errors?.[0]?.detail, detail, violation);
  }
  const stray = await service.request({
    method: 'POST',
    url: '/v3/calculations?receipt=false',
    payload: of(NUMBER),
  });
  t.same([stray.status, ...violationsOf(stray)], [400, '?receipt unknown_field']);
  const unknown = await calculate(service, of(NUMBER, { options: { revision: 'zzzz.1' } }));
  t.match([unknown.status, unknown.json.code], [400, 'unknown_revision']);
});

t.test('all violations of a request are reported at once', async (t) => {
  const answer = await calculate(service, {
    formula: 'a + * b',
    inputs: { a: { ...NICKEL, period: 'x' }, b: { value: 'y' } },
    result: { mode: 'up' },
  });
  t.same(violationsOf(answer), [
    '/inputs/a/period invalid_format',
    '/inputs/b/value invalid_format',
    '/formula invalid_formula',
    '/result/mode unknown_field',
  ]);
});

t.test('more than 50,000 sessions are refused with what to narrow', async (t) => {
  const inputs = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`x${at}`, { code: 'CP-NI-0001', period: '5Y' }]),
  );
  const formula = Object.keys(inputs).join(' + ');
  const anchor = { from: '1993-02', to: '2026-05', every: 'month' };
  const answer = await calculate(service, { formula, inputs, anchor });
  t.same(violationsOf(answer), ['/inputs out_of_range']);
  t.match(answer.json.errors[0].detail, /use \d+ sessions, at most 50000 are allowed; shorten/);
});

t.test('a key that lacks markets learns their names, and nothing of their codes', async (t) => {
  const key = await keyFor(database, [scopeOf('nickel'), scopeOf('copper')]);
  const ask = (body: unknown) => calculate(service, body, { 'x-api-key': key });
  const withCode = (code: string) => ({
    formula: 'a + b',
    inputs: { a: NICKEL, b: { code, period: 'S', unitOfMeasure: 't' } },
    ...ANCHOR,
  });
  t.equal((await ask(withCode('CP-CU-9001'))).status, 200);
  t.equal((await ask(withCode('EXCHANGE-1'))).status, 200, 'a code without the prefix');
  const missing = await ask(withCode('CP-CO-9001'));
  t.match(missing, {
    status: 403,
    json: { code: 'insufficient_scope', detail: 'The scope prices:cobalt is needed here' },
    headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="prices:cobalt"' },
  });
  const bodyOf = async (code: string) => {
    const { status, json } = await ask(withCode(code));
    const { requestId, ...rest } = json;
    return [status, JSON.stringify(rest).replaceAll(code, '')];
  };
  t.same(await bodyOf('CP-CO-9001'), await bodyOf('CP-CO-0000'), 'existing or not');
  const two = await ask({
    formula: 'a + b + c',
    inputs: {
      ...{ a: NICKEL, b: { code: 'CP-CO-9001', period: 'S' } },
      c: { code: 'CP-RC-0001', period: 'S' },
    },
    ...ANCHOR,
  });
  t.equal(two.json.detail, 'The scopes prices:cobalt and prices:recycling are needed here');
  const narrow = await keyFor(database, [scopeOf('nickel')]);
  const free = async (code: string) =>
    calculate(service, withCode(code), { 'x-api-key': narrow }).then(violationsOf);
  t.same(await free('EXCHANGE-1'), await free('EXCHANGE-2'), 'a closed code is like none');
  const none = await keyFor(database, [scopeOf('nickel')]);
  t.equal((await calculate(service, of(NUMBER), { 'x-api-key': none })).status, 200);
  const anonymous = await calculate(service, of(NUMBER), { 'x-api-key': '' });
  t.equal(anonymous.status, 401);
});

t.test('a key that lacks the market of a reference gets its name, and no code of it', async (t) => {
  const ask = async (payables: readonly object[], ...markets: Parameters<typeof scopeOf>[0][]) => {
    const key = await keyFor(database, markets.map(scopeOf));
    const body = { payables, ...TODAY, referencePeriod: 'M-1', unitOfMeasure: 't' };
    const { status, json } = await calculate(service, body, { 'x-api-key': key });
    const { requestId, ...rest } = json;
    return { status, ...rest };
  };
  const black = ['CP-RC-0001', 'CP-RC-0002', 'CP-RC-0003'].map((code) => ({ code, content: '9' }));
  const all = ['recycling', 'nickel', 'cobalt', 'lithium'] as const;
  t.equal((await ask(black, ...all)).status, 200);
  const one = await ask(black, 'recycling', 'nickel', 'lithium');
  t.match(one, { status: 403, detail: 'The scope prices:cobalt is needed here' });
  const two = await ask(black, 'recycling', 'nickel');
  t.match(two.detail, 'The scopes prices:cobalt and prices:lithium are needed here');
  const none = await ask(black, 'nickel', 'cobalt', 'lithium');
  t.match(none, { status: 403, detail: 'The scope prices:recycling is needed here' });
  t.same(await ask([{ code: 'CP-RC-9999' }], 'nickel', 'cobalt', 'lithium'), none, 'as any code');
  // The reference is a code of copper without its prefix.
  const odd = await ask([{ code: 'CP-CO-9003' }], 'cobalt');
  t.match(odd, { status: 403, detail: 'The scope prices:copper is needed here' });
});

t.test('a code of another prefix is found where it is', async (t) => {
  const answer = await calculate(service, of({ code: 'exchange-1', period: 'S' }));
  t.match(answer.json.data[0].inputs.x, { code: 'EXCHANGE-1', value: 2 });
});

/** Values of members of a request: right, almost right, and of other types. */
const anything = fc.oneof(
  fc.constantFrom<unknown>(
    ...[
      null,
      true,
      0,
      -1,
      '',
      ' ',
      'x',
      '2',
      '-3.5',
      '%',
      '1',
      'USD/t',
      'CNY/USD',
      'M-1',
      'S',
      '5S',
    ],
    ...['2026-06', '2026-06-24', '2026-06-01/2026-06-30', 'CP-NI-9001', 'CP-CO-9002', 'CP-LI-0001'],
    ...['average', 'mid', 'low', 'half-up', 'LCE', 'Co', 'EUR', 'lb', 'a', 'a + b', 'a * b / a'],
    ...[[], {}, { a: { value: '1' } }, { from: '2026-01', to: '2026-06', every: 'month' }],
  ),
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>,
);
const INPUT_NAMES = [
  ...['code', 'rate', 'value', 'period', 'side', 'statistic', 'currency', 'unitOfMeasure', 'unit'],
  ...['note', 'vat', 'method', 'rounding', 'odd'],
];
const member = (names: readonly string[]) =>
  fc.dictionary(fc.constantFrom(...names), anything, { maxKeys: 5 });
const rightInput = fc.constantFrom<object>(
  NUMBER,
  NICKEL,
  { value: '18', unit: '%' },
  { rate: 'CNY/USD', period: '2026-06' },
  { code: 'CP-CO-9002', period: 'S', side: 'low' },
);
const inputs = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'max', '1', ''),
  fc.oneof(rightInput, rightInput, member(INPUT_NAMES), anything),
  { maxKeys: 3 },
);
/** Requests that fit, but for the units of some formulas. */
const right = fc
  .tuple(
    rightInput,
    rightInput,
    fc.constantFrom('a * b', 'a / b', 'a + b', 'round(a, 2) * b', 'max(a, a * 2) / b'),
  )
  .map(([a, b, formula]) => ({ inputs: { a, b }, formula, anchor: '2026-06-24' }));
const body = fc.oneof(
  right,
  anything,
  fc.record({ inputs, formula: anything, anchor: anything }, { requiredKeys: [] }),
  fc
    .tuple(inputs, fc.constantFrom('a', 'a + b', 'a * b', 'max(a, b)', 'a / b - 1'), anything)
    .map(([sent, formula, anchor]) => ({ inputs: sent, formula, anchor, result: { decimals: 2 } })),
  fc.tuple(member(INPUT_NAMES), anything).map(([members, average]) => ({ ...members, average })),
  fc
    .tuple(member([...INPUT_NAMES, 'referencePeriod', 'content']), anything)
    .map(([members, code]) => ({ ...TODAY, ...members, payables: [PAYABLE, { code }] })),
  member([...INPUT_NAMES, 'convertBasis', 'inputs', 'formula', 'anchor', 'result', 'options']),
);

t.test('10,000 random requests are answered or refused, never a failure', async (t) => {
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(body, async (sent) => {
      const payload = JSON.stringify(sent);
      const answer = await service.app.inject({
        method: 'POST',
        url: '/v3/calculations',
        payload,
        headers: { 'content-type': 'application/json', 'x-api-key': service.key },
      });
      statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1);
      return answer.statusCode === 200 || answer.statusCode === 400;
    }),
    { numRuns: 10_000 },
  );
  t.ok((statuses.get(200) ?? 0) > 500, JSON.stringify([...statuses]));
});
