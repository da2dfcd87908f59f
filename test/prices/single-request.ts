import { sql } from 'kysely';
import { buildApp } from '../../src/app.ts';
import { openClient } from '../../src/db/client.ts';
import { testConfig } from '../support/http/test-config.ts';

/**
 * A process of its own that asks the service once and prints the answer: its time zone is the one
 * of its environment. Arguments: database, key, market, body.
 */
const [url = '', key = '', market = '', payload = ''] = process.argv.slice(2);
const client = openClient({
  url,
  connectionsMax: 2,
  acquireTimeoutMs: 20_000,
  statementTimeoutMs: 0,
  readOnly: true,
  applicationName: 'commodity-prices test',
});
const app = await buildApp({ config: testConfig(), client });
const answer = await app.inject({
  method: 'POST',
  url: `/v3/prices/${market}`,
  headers: { 'x-api-key': key, 'content-type': 'application/json' },
  payload,
});
const { rows } = await sql<{ zone: string }>`select current_setting('TimeZone') as zone`.execute(
  client.db,
);
console.log(
  JSON.stringify({ clock: new Date(0).getHours(), zone: rows[0]?.zone, body: answer.body }),
);
await app.close();
await client.close();
