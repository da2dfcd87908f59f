import t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import { contentHash } from '../../../src/db/content-hash.ts';
import { withdraw } from '../../../src/ingest/ledger/withdraw.ts';
import { readBatch } from '../../../src/ingest/load/batches.ts';
import { serviceOn } from '../../support/http/service.ts';
import { pastOf, withoutSeq } from '../../support/prices/feed-oracle.ts';
import { readAll } from '../../support/prices/feed-pages.ts';
import {
  CORRECTING,
  describePrices,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  points,
} from '../support/loading.ts';
import { NAMES, priceOf, undoBatch } from './undo-support.ts';

type Test = Parameters<typeof loadText>[0];

const hashOf = async (client: Client): Promise<string> => (await contentHash(client)).hash;

const AT = '2026-01-20T16:00:00Z';

const DUST = `${NAMES}${priceOf('XX-D')}
{"code": "XX-D", "date": "2026-01-08", "mid": 22, "publishedAt": "${AT}"}
`;

type LedgerStep = (t: Test, client: Client) => Promise<{ readonly batch: number | null }>;

/** Every kind of batch, each after those that it needs. */
const KINDS: Readonly<Record<string, LedgerStep>> = {
  'prices and names': (t, client) => loadText(t, client, 'ndjson', DUST),
  points: (t, client) =>
    loadText(
      t,
      client,
      'csv',
      points(`A,2026-01-01,1,2,3,${AT}`, `A,2026-01-08,,5,,${AT}`, `B,2026-01-08,,7,,${AT}`),
    ),
  corrections: (t, client) =>
    loadText(
      t,
      client,
      'csv',
      `code,date,mid,publishedAt,name,region
A,2026-01-01,2.5,${AT},Better,Europe
A,2026-01-15,6,${AT},,
`,
      { ...CORRECTING, vintage: '2026-02-01' },
    ),
  withdrawal: (_, client) =>
    withdraw(client, {
      selection: { code: 'A', from: null, to: null },
      actor: 'tester',
      reason: 'no trade',
    }),
  'points that were withdrawn': (t, client) =>
    loadText(t, client, 'csv', points(`A,2026-01-01,,3,,${AT}`)),
  rates: (_, client) => loadFile(client, 'ecb', fixture('ecb-hist.csv')),
  'rates that change': (t, client) =>
    loadText(t, client, 'ecb', 'Date,USD,XAF,\n2024-01-05,1.5,655.9,\n2024-01-08,1.4,655.9,\n', {
      ...CORRECTING,
      vintage: undefined,
    }),
  'an edition that brings nothing new': (t, client) =>
    loadText(t, client, 'csv', points(`A,2026-01-01,,3.0,,${AT}`), { vintage: '2026-02-01' }),
};

t.test('an undo of any kind of batch restores the data before it', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'A', 'B');
  const stack: { what: string; batch: number | null; before: string; after: string }[] = [];
  for (const [what, step] of Object.entries(KINDS)) {
    const before = await hashOf(client);
    const { batch } = await step(t, client);
    const after = await hashOf(client);
    t.equal(after === before, what === 'an edition that brings nothing new', what);
    stack.push({ what, batch, before, after });
    const undone = await undoBatch(client, batch);
    t.equal(await hashOf(client), before, `${what} undone`);
    const again = await undoBatch(client, undone.batch);
    t.equal(await hashOf(client), after, `${what} done again`);
    t.match(await readBatch(client.db, batch ?? 0), { undoneBy: null });
    t.match(await readBatch(client.db, undone.batch ?? 0), {
      undoes: batch,
      undoneBy: again.batch,
    });
  }
  for (const { what, batch, before } of stack.toReversed()) {
    await undoBatch(client, batch);
    t.equal(await hashOf(client), before, `${what} undone after all that came later`);
  }
  const counted = await pool.query(`select from load_batch where status = 'applied'
    and rows <> inserted + unchanged + corrected + outdated + withdrawn + rejected`);
  t.equal(counted.rows.length, 0);
  const service = await serviceOn(t, database);
  const feed = (await readAll(service, 7)).map(withoutSeq);
  t.same(feed, await pastOf(pool), 'the feed has every change once');
});
