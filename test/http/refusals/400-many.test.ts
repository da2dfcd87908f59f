import t from 'tap';
import { seededDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';
import { overSocket } from '../../support/http/socket-request.ts';
import { recordFigures } from '../../support/run/faults.ts';

const unknownMembers = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, index]));

t.test('a body with unknown members is refused, however many they are', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  for (const count of [1, 99, 100, 101, 399, 400, 401, 3_000, 9_000]) {
    for (const body of [
      unknownMembers(count),
      { filters: unknownMembers(count) },
      { options: unknownMembers(count) },
      { filters: { ...unknownMembers(count), regons: ['Europe'] }, options: { strict: true } },
    ]) {
      const { status, json } = await service.post('nickel', body);
      t.equal(status, 400, `${count} members`);
      t.equal(json.errors[0].code, 'unknown_field');
    }
  }
});

t.test('no member is checked if there are more than any request has', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const errorsTo = async (count: number) =>
    (await service.post('nickel', { filters: unknownMembers(count) })).json.errors;
  t.equal((await errorsTo(999)).length, 100);
  t.match(await errorsTo(1_000), [{ pointer: '', code: 'unknown_field', detail: /1000 members/ }]);
});

t.test('unknown members do not hide what else is wrong', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  for (const filters of [
    { codes: 'abc' },
    { products: 'abc' },
    { dateFrom: '2026-02-31' },
    { products: ['\u0000'] },
    { products: ['\u0301'.repeat(20_000)] },
  ]) {
    const { status } = await service.post('nickel', {
      filters: { ...unknownMembers(400), ...filters },
    });
    t.equal(status, 400, Object.keys(filters).join());
  }
  const { json } = await service.post('nickel', {
    filters: { ...unknownMembers(20), dateFrom: '2026-02-31', products: 'abc' },
  });
  const pointers = json.errors.map((each: { pointer: string }) => each.pointer);
  t.ok(pointers.includes('/filters/dateFrom') && pointers.includes('/filters/products'));
});

t.test(
  'the items of a too long list are checked up to the first one beyond the limit',
  async (t) => {
    const service = await serviceOn(t, await seededDatabase(t));
    const errorsOf = async (values: readonly unknown[]) => {
      const { json } = await service.post('nickel', { filters: { codes: values } });
      return json.errors.map((each: { pointer: string; code: string }) => [
        each.pointer,
        each.code,
      ]);
    };
    const tooMany = ['/filters/codes', 'too_many_items'];
    const long = Array.from({ length: 20_000 }, (_, at) => (at === 500 || at === 501 ? 1 : 'CP'));
    t.same(await errorsOf(long), [['/filters/codes/500', 'wrong_type'], tooMany]);
  },
);

/** Bodies that would change every object, were their members ever copied one by one. */
const polluting = (name: string): string[] => [
  `{"${name}":{"polluted":1}}`,
  `{"filters":{"${name}":{"polluted":1}}}`,
  `{"filters":{"regions":[{"${name}":{"polluted":1}}]}}`,
  `{"options":{"${name}":{"prototype":{"polluted":1}}}}`,
  `{"options":{"aggregate":{"${name}":{"polluted":1}}}}`,
];

t.test('a member with the name of one of Object is unknown, and changes no object', async (t) => {
  const { app, key } = await serviceOn(t, await seededDatabase(t));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const headers = { 'x-api-key': key };
  const names = ['__proto__', '\\u005f_proto__', 'constructor', 'prototype', 'toString'];
  const payloads = [...names, 'hasOwnProperty'].flatMap(polluting);
  recordFigures('F22', { bodies: payloads.length });
  for (const payload of payloads) {
    const request = { method: 'POST', url: '/v3/prices/nickel', headers, payload } as const;
    t.equal((await overSocket(app, request)).statusCode, 400, payload);
    t.notOk('polluted' in {}, payload);
  }
});
