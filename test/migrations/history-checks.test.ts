import t from 'tap';
import { failureOf, inTransaction } from '../support/database/minimal-data.ts';
import { storedWorld } from '../verify/support.ts';

/** Rows of the past that no load could have written, and the constraint that each breaks. */
const BROKEN: ReadonlyMap<string, string> = new Map([
  ['series_low_mid_high', 'update series_history set low = 100'],
  ['series_is_trimmed', 'update series_history set mid = 10.50'],
  ['series_has_15_digits', 'update series_history set low = null, high = null, mid = 1e15'],
  ['series_has_15_digits of NaN', `update series_history set low = null, high = null, mid = 'NaN'`],
  ['series_date_check', `update series_history set date = '1700-01-01' where date = '2020-02-29'`],
  ['series_date_check1', `update series_history set date = '2190-01-01' where date = '2020-02-29'`],
  ['series_published_at_check', `update series_history set published_at = '0100-01-01'`],
  ['fx_rate_is_a_positive_number', 'update fx_rate_history set rate = -1.1052'],
  ['price_payable_has_no_currency', `update price_history set price_type = 'payable'`],
]);

t.test('the past refuses each value that its table refuses, also with triggers off', async (t) => {
  const { pool } = await storedWorld(t);
  for (const [constraint, statement] of BROKEN) {
    const refusal = await failureOf(
      inTransaction(pool, async (client) => {
        await client.query('set local session_replication_role = replica');
        await client.query(statement);
      }),
    );
    t.match(refusal, { code: '23514' }, constraint);
    t.match(refusal.message, /check constraint/, constraint);
  }
});
