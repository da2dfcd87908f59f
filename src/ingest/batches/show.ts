import type { Client } from '../../db/client.ts';
import { withSession } from '../../db/session.ts';
import { type BatchChange, changesOf } from './changes.ts';
import { type Batch, readBatch } from './log.ts';

/**
 * Tells a line of the ledger and then, one after another, what the batch changed. All of it is of
 * one moment, and memory does not grow with it.
 * @throws UnknownBatchError when no batch has this number, and what the teller throws
 */
export const showBatch = (
  client: Client,
  number: number,
  tell: (batch: Batch, changes: AsyncIterable<BatchChange>) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> =>
  withSession(client, signal, ({ db }) =>
    db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async (trx) => {
        const batch = await readBatch(trx, number);
        const revision = batch.revision?.split('.')[1];
        await tell(batch, revision === undefined ? nothing() : changesOf(trx, revision));
      }),
  );

async function* nothing(): AsyncGenerator<never> {}
