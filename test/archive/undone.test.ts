import t from 'tap';
import { contentHash } from '../../src/db/content-hash.ts';
import { withdraw } from '../../src/ingest/ledger/withdraw.ts';
import { readLog } from '../../src/ingest/load/batches.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { NAMES, priceOf, undoBatch } from '../ingest/ledger/undo-support.ts';
import { fixture, loadFile, loadingDatabase, loadText, points } from '../ingest/support/loading.ts';
import { exported, imported } from './support.ts';

t.test(
  'an archive carries the ledger, and the copy can undo what the original could',
  async (t) => {
    const { client } = await loadingDatabase(t);
    await loadText(t, client, 'ndjson', NAMES + priceOf('A'));
    await loadText(t, client, 'csv', points('A,2026-01-01,,1,,', 'A,2026-01-08,,2,,'));
    const rates = await loadFile(client, 'ecb', fixture('ecb-hist.csv'));
    const selection = { code: 'A', dates: ['2026-01-08'] };
    const withdrawn = await withdraw(client, { selection, actor: 'tester', reason: 'no trade' });
    const { batch } = await loadText(t, client, 'ndjson', priceOf('B'));
    const undone = await undoBatch(client, batch);
    await undoBatch(client, rates.batch);
    const copy = await imported(t, await exported(t, client));
    const logOf = (each: typeof client) => readLog(each.db, { limit: 100, market: null });
    t.same(await logOf(copy.client), await logOf(client));
    for (const each of [client, copy.client]) {
      await undoBatch(each, undone.batch);
      await undoBatch(each, withdrawn.batch);
      const { rules } = await verify(each, RULES, () => {});
      t.same(
        rules.filter(({ count }) => count > 0),
        [],
      );
    }
    t.same(await contentHash(copy.client), await contentHash(client));
    const { rows } = await copy.pool.query('select code from price order by code');
    t.same(rows, [{ code: 'A' }, { code: 'B' }]);
  },
);
