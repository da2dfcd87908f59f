import { openClient } from '../../src/db/client.ts';
import { undo } from '../../src/ingest/ledger/undo.ts';
import { withdraw } from '../../src/ingest/ledger/withdraw.ts';
import { load } from '../../src/ingest/load/load.ts';

/**
 * A separate process that changes data and is killed: `node loader.ts URL load FILE`, `URL withdraw
 * CODE` or `URL undo BATCH`. It prints each step on a line and sets its application name. At a step
 * that matches KILLED_AT it kills itself.
 */
const [url = '', what = '', which = ''] = process.argv.slice(2);
const client = openClient({
  url,
  connectionsMax: 2,
  acquireTimeoutMs: 20_000,
  statementTimeoutMs: 0,
  readOnly: false,
  applicationName: 'loader to be killed',
});
function say(step: string): void {
  process.stdout.write(`${step}\n`);
  const moment = process.env['KILLED_AT'];
  if (moment !== undefined && new RegExp(moment).test(step)) process.kill(process.pid, 'SIGKILL');
}

const common = { actor: 'killed', reason: 'a change that is interrupted' };
const loading = {
  ...common,
  format: 'csv',
  file: which,
  jumpFactor: '5',
  acceptJumps: true,
  allowCorrections: true,
  onProgress: ({ rows }) => say(`${rows} rows`),
} as const satisfies Parameters<typeof load>[1];

const WORK: Readonly<Record<string, () => Promise<{ readonly status: string }>>> = {
  load: () => load(client, loading),
  withdraw: () => withdraw(client, { ...common, selection: { code: which, from: null, to: null } }),
  undo: () => undo(client, { ...common, batch: Number(which) }),
};
say('started');
const report = await WORK[what]?.();
say(String(report?.status));
await client.close();
