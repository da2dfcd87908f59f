import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { differenceOf } from './recompute.ts';
import { calculate, resultOf, violationsOf } from './support.ts';

let service: Service;
t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await addPrice(client, { code: 'V-1', currency: 'CNY', unit: 'tonne' });
    await client.query(`update price set vat_country = 'CN' where code = 'V-1'`);
    const days = ['1993-12-31', '2018-04-27', '2019-03-29', '2019-04-02'];
    await addPrice(client, { code: 'V-2', currency: 'CNY', unit: 'tonne' });
    for (const at of [1, 2]) {
      await addPrice(client, { code: `P-${at}`, currency: null, unit: 'percent' });
      await putPoints(client, `P-${at}`, ['2019-04-02', null, '80', null]);
      const reference = { code: `V-${at}`, side: 'mid', statistic: 'session', element: 'Ni' };
      await client.query('update price set payable_reference = $2 where code = $1', [
        `P-${at}`,
        JSON.stringify([{ ...reference, validFrom: '2010-01-01' }]),
      ]);
    }
    for (const day of days) await putPoints(client, 'V-1', [day, null, '57500', null]);
  });
  service = await serviceOn(t, database);
});

const asked = (period: string, more: object = {}) =>
  calculate(service, {
    inputs: { price: { code: 'V-1', period, vat: 'exclude', ...more } },
    result: { decimals: 2 },
    options: { decimalsAsText: true },
  });

t.test('57,500 CNY with VAT are worth less by the rate of each day', async (t) => {
  const figures = [
    ['2018-04-27', '49145.3', '17'],
    ['2019-03-29', '49568.97', '16'],
    ['2019-04-02', '50884.96', '13'],
  ];
  for (const [day = '', value, rate] of figures) {
    const answer = await asked(day);
    const result = resultOf(answer);
    t.equal(result.value, value, day);
    t.strictSame(answer.json.$metadata.warnings, []);
    t.match(result.inputs.price.sessions, [{ date: day, published: '57500', vat: rate }]);
    t.equal(differenceOf(result), null);
  }
});

t.test(
  'an average is of the sessions without VAT, each rounded if the input says so',
  async (t) => {
    const result = resultOf(await asked('2019'));
    t.equal(result.value, '50226.96');
    t.equal(differenceOf(result), null);
    const rounding = { session: 0, mode: 'up' };
    const rounded = resultOf(await asked('2019', { rounding, statistic: 'min' }));
    t.equal(rounded.value, '49569');
    t.equal(differenceOf(rounded), null);
  },
);

t.test('a session without a rate of VAT makes the result null, with its reason', async (t) => {
  const result = resultOf(await asked('1993-12-31'));
  t.equal(result.value, null);
  t.match(
    result.reasons.filter(({ code }: { code: string }) => code === 'rate_missing'),
    [{ input: 'price', detail: 'There is no rate of VAT on 1993-12-31' }],
  );
  t.match(result.inputs.price.sessions, [{ vat: null }]);
});

t.test(
  'the short form payables excludes VAT from the references, by the day of each',
  async (t) => {
    const body = {
      payables: [{ code: 'P-1', content: '50' }],
      ...{ period: '2019-04-02', referencePeriod: '2018-04-27/2019-04-02' },
      options: { decimalsAsText: true },
    };
    const published = resultOf(await calculate(service, body));
    t.match(published, { value: '23000', inputs: { reference1: { value: '57500' } } });
    const asked = await calculate(service, { ...body, vat: 'exclude' });
    const result = resultOf(asked);
    t.strictSame(asked.json.$metadata.warnings, []);
    const { payable1, reference1 } = result.inputs;
    t.match(
      reference1.sessions.map(({ vat }: { vat: string }) => vat),
      ['17', '16', '13'],
    );
    t.match(payable1.sessions, [{ vat: null, published: '80' }], 'a payable includes none');
    t.equal(result.value, '19946.56', 'mean of 49145.30, 49568.97 and 50884.96, × 0.8 × 0.5');
    t.equal(differenceOf(result), null);
    const untaxed = { ...body, payables: [{ code: 'P-2', content: '50' }], vat: 'exclude' };
    const refused = await calculate(service, untaxed);
    t.same(violationsOf(refused), ['/vat vat_not_included']);
    t.match(refused.json.errors[0].detail, /^V-2 is not known to include VAT/);
  },
);
