import { openClient } from '../../src/db/client.ts';
import { load } from '../../src/ingest/load.ts';

/**
 * A process of its own that loads a CSV file, to be killed: `node loader.ts URL FILE`. It says
 * each step on a line, and its name to the database.
 */
const [url = '', file = ''] = process.argv.slice(2);
const client = openClient({
  url,
  connectionsMax: 2,
  acquireTimeoutMs: 20_000,
  statementTimeoutMs: 0,
  readOnly: false,
  applicationName: 'loader to be killed',
});
process.stdout.write('started\n');
const report = await load(client, {
  format: 'csv',
  file,
  actor: 'killed',
  jumpFactor: '5',
  acceptJumps: true,
  allowCorrections: true,
  reason: 'a correction that is interrupted',
  onProgress: ({ rows }) => process.stdout.write(`${rows} rows\n`),
});
process.stdout.write(`${report.status}\n`);
await client.close();
