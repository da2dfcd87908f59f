import type { Client } from '../../db/client.ts';
import { SEED_FORMAT } from '../../db/seed/format.ts';
import { UndoRefusal, type UndoReport, type UndoRequest, undo } from './undo.ts';

/**
 * Undoes the batches of the sample data, newest first: each in one transaction and one revision. A
 * run after a crash continues with the others.
 * @throws UndoRefusal if there is none, or if later batches depend on one; nothing has changed then
 */
export async function undoSamples(
  client: Client,
  request: Omit<UndoRequest, 'batch' | 'after'>,
): Promise<UndoReport[]> {
  const rows = await client.db
    .selectFrom('load_batch')
    .select('id')
    .where('format', '=', SEED_FORMAT)
    .where('status', '=', 'applied')
    .where('undone_by', 'is', null)
    .orderBy('id', 'desc')
    .execute();
  if (rows.length === 0) {
    throw new UndoRefusal('no batch of samples is in force: there is nothing to undo');
  }
  const batches = rows.map(({ id }) => id);
  const { onPreview, ...others } = request;
  const previewed: UndoReport[] = [];
  for (const [index, batch] of batches.entries()) {
    const after = batches.slice(0, index);
    const preview = request.dryRun ? onPreview : undefined;
    previewed.push(
      await undo(client, { ...others, batch, after, dryRun: true, onPreview: preview }),
    );
  }
  if (request.dryRun) return previewed;
  const undone: UndoReport[] = [];
  for (const batch of batches) undone.push(await undo(client, { ...request, batch }));
  return undone;
}
