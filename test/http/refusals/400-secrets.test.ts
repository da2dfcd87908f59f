import t from 'tap';
import { newKey } from '../../../src/auth/keys/format.ts';
import { parameterPointer } from '../../../src/contract/schemas/problem.ts';
import { testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';

const service = await serviceOn(t, await testDatabase(t));

interface ReportedSecret {
  readonly pointer: string;
  readonly code: string;
}

t.test('a key in a body or a query is refused, with all else that is wrong', async (t) => {
  const { text } = newKey();
  const body = { filters: { regions: [text] }, options: { asOf: 'x', decimals: 99, [text]: 1 } };
  const posted = await service.post('nickel', body);
  const got = await service.request({
    method: 'GET',
    url: `/v3/prices/nickel?regions=${text}&asOf=x&decimals=99&${text}=1`,
  });
  for (const [{ status, text: sent }, at] of [
    [posted, String],
    [got, parameterPointer],
  ] as const) {
    t.equal(status, 400);
    const json = JSON.parse(sent);
    const errors = json.errors.map(({ pointer, code }: ReportedSecret) => `${pointer} ${code}`);
    for (const each of [
      `${at('/filters/regions/0')} invalid_characters`,
      `${at('/options/asOf')} invalid_format`,
      `${at('/options/decimals')} out_of_range`,
    ]) {
      t.ok(errors.includes(each), `${each} of ${errors.join()}`);
    }
    t.notMatch(JSON.stringify(json), text.slice(-38));
  }
});

t.test('a key in the address, without a credential in a header, is reported', async (t) => {
  const { text } = newKey();
  const coded = text.replaceAll('_', '%5F');
  const ask = (url: string) => service.app.inject({ method: 'GET', url });
  for (const query of [`key=${text}`, `x-api-key=${text}`, `regions=x&apikey=${coded}`]) {
    const answer = await ask(`/v3/prices/nickel?${query}`);
    t.match(answer.json(), { status: 401, code: 'missing_credentials' });
    t.match(
      answer.json().detail,
      /^Send an API key .*\. The address contains an API key .* revoke it/,
      query,
    );
    t.notMatch(answer.body, text.slice(-38));
  }
  const without = (await ask('/v3/prices/nickel?key=mine&regions=Europe')).json();
  t.match(without, { status: 401, code: 'missing_credentials' });
  t.notMatch(without.detail, /revoke/);
});

t.test('each place that holds a key is reported, wherever it is', async (t) => {
  const { text } = newKey();
  const { json } = await service.post('nickel', {
    filters: {
      regions: ['Europe', text, 'Asia', text],
      products: [['x', [text]], { 'a/b': { '~c': text }, [text]: 1 }],
      codes: ['x'],
    },
    options: { aggregate: { by: text }, [`${text}`]: [], decimals: text },
  });
  const found = json.errors.filter(({ code }: ReportedSecret) => code === 'invalid_characters');
  t.same(
    found.map(({ pointer }: ReportedSecret) => pointer),
    [
      '/filters/regions/1',
      '/filters/regions/3',
      '/filters/products/0/1/0',
      '/filters/products/1',
      '/filters/products/1/a~1b/~0c',
      '/options',
      '/options/aggregate/by',
      '/options/decimals',
    ],
  );
});

t.test('the refusal is short, however many keys are sent, in whatever members', async (t) => {
  const many = { [`a/b~${'x'.repeat(50_000)}`]: Array(900).fill('cps_live_x') };
  const { status, json } = await service.post('nickel', { filters: many });
  t.equal(status, 400);
  t.equal(json.errors.length, 100);
  t.ok(JSON.stringify(json).length < 50_000);
  t.match(json.errors[0].pointer, /^\/filters\/a~1b~0x+…\/0$/);
});
