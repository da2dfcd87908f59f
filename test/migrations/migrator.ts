// Runs the migrations of a folder: `node migrator.ts DATABASE_URL FOLDER_URL`.
import { openClient } from '../../src/db/client.ts';
import { migrateUp } from '../../src/db/migrate/migrate.ts';

const [, , url = '', folder = ''] = process.argv;
const client = openClient({
  url,
  connectionsMax: 2,
  acquireTimeoutMs: 20_000,
  statementTimeoutMs: 0,
  readOnly: false,
  applicationName: 'a migrator to be killed',
});
const ran = await migrateUp(client.db, { folder: new URL(folder) });
process.stdout.write(`${ran.join()}\n`);
await client.close();
