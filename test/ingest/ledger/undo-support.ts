import type { Client } from '../../../src/db/client.ts';
import { UndoRefusal, type UndoReport, undo } from '../../../src/ingest/ledger/undo.ts';

type BatchNumber = number | null;

/** Undoes a batch. */
export const undoBatch = (
  client: Client,
  batch: BatchNumber,
  dryRun = false,
): Promise<UndoReport> =>
  undo(client, { batch: batch ?? 0, actor: 'tester', reason: 'a draft', dryRun });

/** The conflicting batches of a refused undo, newest first. */
export async function conflictsOf(
  client: Client,
  batch: BatchNumber,
): Promise<readonly BatchNumber[]> {
  try {
    await undoBatch(client, batch);
  } catch (error) {
    if (error instanceof UndoRefusal) return error.conflicts.map((each) => each.batch);
    throw error;
  }
  throw new Error('the undo has no conflicts');
}

const line = (record: object): string => `${JSON.stringify(record)}\n`;

/** A product of nickel and a purity, as NDJSON. */
export const NAMES =
  line({
    product: {
      market: 'nickel',
      name: 'Dust',
      alias: 'd',
      chemicalCode: 'Ni',
      isSustainable: true,
    },
  }) + line({ value: { dimension: 'purity', name: '99.9999% Ni' } });

/** A price that uses both, as NDJSON. */
export const priceOf = (code: string): string =>
  line({
    price: {
      code,
      market: 'nickel',
      name: 'Dust',
      product: 'Dust',
      priceCategory: 'Spot',
      priceType: 'Price',
      frequency: 'Weekly',
      currency: 'USD',
      unitOfMeasure: 'kg',
      purity: '99.9999% Ni',
    },
  });
