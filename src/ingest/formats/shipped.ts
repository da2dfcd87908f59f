import { readFileSync } from 'node:fs';
import type { SourceRecord } from '../load/records.ts';
import type { TableMapping } from '../mapping/mapping.ts';
import { mappingOf } from '../mapping/mapping.ts';
import { readTable, type Shipped } from '../mapping/table.ts';
import { Refusal } from '../rejects/problems.ts';
import type { ReadContext } from './format.ts';

/** The mapping of a format of ours, which lies beside its module. */
export const shippedMapping = (name: string): TableMapping =>
  mappingOf(readFileSync(new URL(name, import.meta.url)), name);

/**
 * Reads a file of a publisher with the mapping of its format.
 * @throws Refusal when the file is another one
 */
export async function* readShipped(
  mapping: TableMapping,
  context: ReadContext,
  shipped: Shipped = {},
): AsyncGenerator<SourceRecord[]> {
  try {
    yield* readTable(mapping, context, shipped);
  } catch (error) {
    const { problem } = error as Refusal;
    if (!(error instanceof Refusal) || problem.code !== 'missing_column') throw error;
    // The columns of a publisher's file are known: without one of them it is another file.
    throw new Refusal('invalid_layout', problem.message, problem);
  }
}
