import type t from 'tap';
import { createKey, revokeKey } from '../../src/auth/keys/keys.ts';
import type { Client } from '../../src/db/client.ts';
import { withdraw } from '../../src/ingest/ledger/withdraw.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { CALENDARS, loadCalendarText } from '../ingest/calendar/support.ts';
import {
  CORRECTING,
  describePayable,
  describePrices,
  loadingDatabase,
  loadText,
  points,
} from '../ingest/support/loading.ts';
import type { TestDatabase } from '../support/database/database.ts';
import { inRevision } from '../support/database/minimal-data.ts';

type Test = Pick<typeof t, 'teardown'>;

const RATES = 'Date,USD,\n2020-01-31,1.1052,\n2020-01-30,1.1029,\n';
const CORRECTED_RATES = 'Date,USD,\n2020-02-03,1.1066,\n2020-01-31,1.1053,\n2020-01-30,1.1029,\n';

/**
 * A database with a little of everything: prices of two kinds, editions that correct each other,
 * a value that was withdrawn and published again, rates, refused loads, renamed and removed rows,
 * and keys that were changed.
 */
export async function storedWorld(test: Test): Promise<TestDatabase> {
  const database = await loadingDatabase(test);
  const { client, db, pool } = database;
  await describePrices(client, 'XX-1', 'XX-2', 'XX-3');
  await describePayable(client, 'XX-9');
  const first = points(
    'XX-1,2020-01-31,9,10,11,',
    'XX-1,2020-02-29,,10.5,,',
    'XX-9,2020-01-31,,73,,',
  );
  await loadText(test, client, 'csv', first, { vintage: '2020-03-01' });
  const second = points('XX-1,2020-01-31,9,10.25,11,', 'XX-2,2020-01-31,,7,,');
  await loadText(test, client, 'csv', second, { ...CORRECTING, vintage: '2020-04-01' });
  const third = points('XX-1,2020-01-31,9,10.5,11,', 'XX-2,2020-01-31,,8,,');
  await loadText(test, client, 'csv', third, { ...CORRECTING, vintage: '2020-05-01' });
  await loadText(test, client, 'csv', points('XX-1,2020-01-31,12,10,11,'));
  const named = { code: 'XX-1', dates: ['2020-02-29'] };
  await withdraw(client, { selection: named, actor: 'tester', reason: 'never assessed' });
  await loadText(test, client, 'csv', points('XX-1,2020-02-29,,10.75,,'));
  await loadText(test, client, 'ecb', RATES);
  await loadText(test, client, 'ecb', CORRECTED_RATES, CORRECTING);
  await loadCalendarText(test, client, CALENDARS);
  await loadCalendarText(
    test,
    client,
    CALENDARS.replace('16:00', '17:00').replace('xx-2: weekly', 'xx-2: none'),
  );
  await inRevision(pool, `update price set name = 'Renamed' where code = 'XX-2'`);
  await inRevision(pool, `update product set alias = 'Renamed' where name = 'Bauxite'`);
  await inRevision(pool, `update product set alias = 'Again' where name = 'Bauxite'`);
  await inRevision(pool, `update price set name = 'Again' where code = 'XX-2'`);
  await inRevision(pool, `delete from price where code = 'XX-3'`);
  const key = await createKey(db, { name: 'desk', scopes: ['prices:nickel'], expiresAt: null });
  await revokeKey(db, key.id, 'lost');
  const scopes = ['prices:copper', 'prices:cobalt'];
  await createKey(db, { name: 'other', scopes, expiresAt: new Date(Date.now() + 1e9) });
  return database;
}

/** The rules that are broken, each with what breaks it. */
export async function findings(client: Client, rules = RULES): Promise<unknown[]> {
  const { rules: found } = await verify(client, rules, () => {});
  return found.filter(({ count }) => count > 0);
}
