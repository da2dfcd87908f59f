import type t from 'tap';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { type Reply, type Service, serviceOn } from '../support/http/service.ts';
import { addPrice, commit, putPoints, putRates } from '../support/prices/sample-writes.ts';

/** Sends a calculation, with all scopes or with another key. */
export const calculate = (
  service: Service,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> =>
  service.request({
    method: 'POST',
    url: '/v3/calculations',
    payload: body as object,
    headers: { 'content-type': 'application/json', ...headers },
  });

/** The only result of an answer. */
export const resultOf = ({ json, text }: Reply) => {
  if (json?.data?.length !== 1) throw new Error(`not one result: ${text.slice(0, 500)}`);
  return json.data[0];
};

/** The codes and pointers of the violations of a refusal. */
export const violationsOf = ({ json }: Reply): string[] =>
  (json.errors ?? []).map((each: { pointer: string; code: string }) => {
    return `${each.pointer} ${each.code}`;
  });

/** Adds a payable whose reference is a price of another market, without its prefix. */
async function addOddReference(client: Parameters<typeof addPrice>[0]): Promise<void> {
  const code = 'CP-CO-9003';
  await addPrice(client, { code, currency: null, unit: 'percent', market: 'cobalt' });
  await putPoints(client, code, ['2019-12-02', '60', '61', '62'], ['2026-06-01', '60', '61', '62']);
  const reference = { code: 'EXCHANGE-1', side: 'mid', statistic: 'session', element: 'Cu' };
  await client.query('update price set payable_reference = $2 where code = $1', [
    code,
    JSON.stringify([{ ...reference, validFrom: '2020-01-01' }]),
  ]);
}

/** A seeded database with prices of known numbers, and rates of the ECB for a few days. */
export async function calculationDatabase(
  test: Parameters<typeof testDatabase>[0],
): Promise<TestDatabase> {
  const database = await testDatabase(test, { seeded: true });
  await commit(database.pool, async (client) => {
    const inTonnes = { currency: 'USD', unit: 'tonne' };
    await addPrice(client, { code: 'CP-NI-9001', ...inTonnes });
    await addPrice(client, {
      code: 'CP-CO-9001',
      currency: 'USD',
      unit: 'pound',
      market: 'cobalt',
    });
    await addPrice(client, {
      code: 'CP-CO-9002',
      currency: null,
      unit: 'percent',
      market: 'cobalt',
    });
    await addPrice(client, { code: 'CP-CU-9001', ...inTonnes, market: 'copper' });
    // A code without the prefix of its market.
    await addPrice(client, { code: 'EXCHANGE-1', ...inTonnes, market: 'copper' });
    await putPoints(
      client,
      'CP-NI-9001',
      ['2026-03-30', '16100', '16200', '16300'],
      ['2026-05-04', '16000', '16100', '16200'],
      ['2026-05-11', '16200', '16300', '16400'],
      ['2026-05-18', '16250.50', '16350.50', '16450.50'],
      ['2026-06-01', '17000', '17100', '17200'],
      ['2026-06-08', null, '17200', null],
    );
    await putPoints(client, 'CP-CO-9001', ['2019-11-08', '16.00', '16.50', '16.75']);
    await putPoints(client, 'CP-CO-9002', ['2019-11-08', '60', '61', '62']);
    await putPoints(
      client,
      'CP-CU-9001',
      ['2026-06-01', '99', '100', '101'],
      ['2026-06-02', '199', '200', '201'],
    );
    await putPoints(client, 'EXCHANGE-1', ['2026-06-01', '1', '2', '3']);
    await addOddReference(client);
    await putRates(client, 'ECB', 'USD', {
      '2026-06-01': '1',
      '2026-06-02': '1.25',
      '2019-11-08': '1.1034',
    });
    await putRates(client, 'ECB', 'CNY', {
      '2026-06-01': '7.0',
      '2026-06-02': '9.375',
      '2019-11-08': '7.7115',
    });
  });
  return database;
}

/** The service over that database. */
export async function calculationService(
  test: typeof t,
): Promise<{ readonly service: Service; readonly database: TestDatabase }> {
  const database = await calculationDatabase(test);
  return { database, service: await serviceOn(test, database) };
}
