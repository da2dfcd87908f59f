import { matchKey } from '../../../src/catalog/match-key.ts';
import { loadText } from '../../ingest/support/loading.ts';
import type { TestDatabase } from '../database/database.ts';
import { addPrice, commit, putPoints, putRates } from './sample-writes.ts';

type Test = Parameters<typeof loadText>[0];

/** Something that happens to the data: commits of its own, at most a few. */
export type Change = (database: TestDatabase, test: Test) => Promise<unknown>;

const sqlChange =
  (...statements: readonly string[]): Change =>
  ({ pool }) =>
    commit(pool, async (client) => {
      for (const statement of statements) await client.query(statement);
    });

const some = (one: number, of: number) => `id % ${of} = ${one}`;

/** Rates of every euro pair, as far as they bring what sample rates do not have. */
const REAL_RATES = `
  insert into fx_rate (source, currency_id, date, rate)
    select 'ECB', currency_id, date, trim_scale(round(rate * 1.02, 4)) from fx_rate
    where source = 'SAMPLE' and date >= '2025-12-01'`;

const FED_RATES = `
  insert into fx_rate (source, currency_id, date, rate)
    select 'FED', currency_id, date, 7.1 from fx_rate
    where source = 'SAMPLE' and currency_id = (select id from currency where iso = 'CNY')`;

const CSV = (round: number) => `code,date,low,mid,high,publishedAt
CP-NI-0001,2026-07-0${round},18000,18100.5,18200,2026-07-0${round}T16:00:00Z
CP-CU-0001,2026-07-0${round},,13600,,2026-07-0${round}T16:00:00Z
`;

const ECB = `Date,USD,JPY,CNY,
2026-07-02,1.1701,175.2,7.91,
2026-07-01,1.1698,N/A,7.9,
`;

const renameProducts: Change = ({ pool }) =>
  commit(pool, async (client) => {
    const { rows } = await client.query(`select id, name from product where ${some(1, 3)}`);
    for (const { id, name } of rows) {
      await client.query('update product set name = $2, match_key = $3 where id = $1', [
        id,
        `${name} (new)`,
        matchKey(`${name} (new)`),
      ]);
    }
  });

const newCurrency: Change = ({ pool }) =>
  commit(pool, async (client) => {
    await client.query(`insert into currency (uuid, iso, name, symbol)
      values (gen_random_uuid(), 'SEK', 'Swedish Krona', 'kr')`);
    await client.query(`insert into unit_of_measure
      (uuid, slug, name, symbol, name_key, symbol_key, dimension, factor)
      values (gen_random_uuid(), 'cwt', 'Hundredweight', 'cwt', 'hundredweight', 'cwt', 'mass',
        50.80234544)`);
    await addPrice(client, { code: 'CP-NI-7777', currency: 'SEK', unit: 'cwt' });
    await putPoints(client, 'CP-NI-7777', ['2026-06-30', null, '9000', null]);
    await putRates(client, 'SAMPLE', 'SEK', { '2026-06-30': '11.2', '2026-06-25': '11.1' });
  });

/** Everything that can happen to data, in an order in which each has something to change. */
export const CHANGES: Readonly<Record<string, Change>> = {
  'a load': ({ client }, test) => loadText(test, client, 'csv', CSV(1)),
  corrections: sqlChange(`update series set mid = mid + 1, low = null, high = null,
    corrections = corrections + 1, published_at = published_at + interval '3 days'
    where date >= '2026-06-01' and price_id % 2 = 0`),
  'renamed products': renameProducts,
  'corrected rates': sqlChange(`update fx_rate set rate = trim_scale(rate * 1.5)
    where source = 'SAMPLE' and date between '2026-03-01' and '2026-04-15'`),
  withdrawals: sqlChange(`delete from series where price_id % 5 = 1 and date >= '2026-05-01'`),
  'a new currency and a new price': newCurrency,
  'edited attributes': sqlChange(
    `update price set name = name || ' (edited)', short_name = null,
       specification = specification || '[{"name": "edited", "value": "yes", "order": 9}]',
       region_id = null where ${some(0, 2)}`,
  ),
  'rates of a real source': sqlChange(REAL_RATES),
  'rates withdrawn': sqlChange(
    `delete from fx_rate where source = 'SAMPLE' and date > '2026-06-01'`,
  ),
  'renamed reference data': sqlChange(
    `update currency set symbol = symbol || '*', name = 'The ' || name`,
    `update unit_of_measure set symbol = symbol || '*', symbol_key = symbol_key || '*'
       where slug <> 'tonne'`,
    `update dimension_value set short_name = null where kind = 'frequency' and short_name = 'D'`,
  ),
  'corrected rates of the real source': ({ client }, test) => loadText(test, client, 'ecb', ECB),
  'all rates of the real source withdrawn': sqlChange(`delete from fx_rate where source = 'ECB'`),
  'rates of another source': sqlChange(FED_RATES),
  'a second load': ({ client }, test) => loadText(test, client, 'csv', CSV(2)),
  'the other source withdrawn': sqlChange(`delete from fx_rate where source = 'FED'`),
};
