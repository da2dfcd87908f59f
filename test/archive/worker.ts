import { exportArchive } from '../../src/archive/export.ts';
import type { ArchiveProgress } from '../../src/archive/format.ts';
import { importArchive } from '../../src/archive/import.ts';
import { openClient } from '../../src/db/client.ts';

/**
 * A process of its own that exports or imports and says how far it is, and at the end the most
 * memory that it held, in KiB. Arguments: `export` or `import`, database, folder. At the
 * moment that KILLED_AT names it dies, as if somebody had killed it just then.
 */
const [act, url = '', folder = ''] = process.argv.slice(2);
const client = openClient({
  url,
  connectionsMax: 2,
  acquireTimeoutMs: 20_000,
  statementTimeoutMs: 0,
  readOnly: false,
  applicationName: 'archive worker',
});
let last = '';
const onProgress = ({ item, unit }: ArchiveProgress): void => {
  const text = `${unit} of ${item}`;
  if (text !== last) process.stdout.write(`${text}\n`);
  last = text;
  if (text === process.env['KILLED_AT']) process.kill(process.pid, 'SIGKILL');
};
if (act === 'export') await exportArchive(client, { folder, markets: null, onProgress });
else await importArchive(client, { folder, onProgress });
await client.close();
process.stdout.write(`${process.resourceUsage().maxRSS} KiB at most\n`);
