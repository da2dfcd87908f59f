import type { Trx } from '../descriptions/known-names.ts';
import { currencyName } from '../descriptions/new-names.ts';
import { classifyPrices } from '../descriptions/prices.ts';
import { type Listed, listChanges, PREVIEW_MAX } from '../staging/change-set.ts';
import {
  compareValues,
  countValues,
  findJumps,
  listNewValues,
  markForComparison,
  rejectJumpingValues,
} from '../staging/compare.ts';
import { checkQuotations } from '../staging/quotations.ts';
import {
  countFaulty,
  dropRejected,
  type RejectionContext,
  rejectCorrections,
  rejectDuplicates,
  rejectJumps,
  rejectUndescribed,
  rejectUnknown,
} from '../staging/rejections.ts';
import { markDescribed, markRefused, resolveSeries } from '../staging/staged-series.ts';
import type { Load, LoadPreview } from './request.ts';

/** Rolls the transaction back; the problems of the load state why. */
export class LoadRefused extends Error {
  override readonly name = 'Refused';
}

/** Rejects rates of unknown currencies, and finds the currencies to add. */
async function classifyCurrencies(context: RejectionContext, load: Load): Promise<void> {
  const { trx } = context;
  const rows = await trx.selectFrom('currency').select('iso').execute();
  const known = rows.map(({ iso }) => iso);
  const missing = load.series.names.filter((iso) => !known.includes(iso));
  load.currencies = missing.filter((iso) => currencyName(iso) !== undefined);
  await markDescribed(trx, load.currencies);
  await rejectUnknown(context, 'unknown_currency', async () => known);
}

/** The codes of all prices. */
export async function codesOf(trx: Trx): Promise<string[]> {
  const rows = await trx.selectFrom('price').select('code').execute();
  return rows.map(({ code }) => code);
}

/** Marks prices whose descriptions were rejected, and rejects unknown codes. */
async function checkDescriptions(
  context: RejectionContext,
  { prices, descriptions }: Load,
): Promise<void> {
  const { trx, problems } = context;
  if (prices.failed.size > 0) {
    const numbers = [...prices.failed.keys()];
    const lines = numbers.map((number) => {
      const { file, line } = descriptions.prices.get(number) ?? {};
      // Only a description in the loaded file has values in its row.
      return file === undefined ? (line ?? null) : null;
    });
    await markRefused(trx, numbers, lines, problems.rejects === null);
  }
  await rejectUnknown(context, 'unknown_code', () => codesOf(trx));
}

/** Compares values where needed and rejects invalid ones. */
async function compare(context: RejectionContext, load: Load): Promise<void> {
  const { trx, problems } = context;
  const { jumpFactor } = load.request;
  if (!(await markForComparison(trx, load))) return;
  await compareValues(trx, load);
  if (load.prices.failed.size > 0) await rejectUndescribed(context);
  await rejectDuplicates(context);
  if (!load.mayCorrect) await rejectCorrections(context);
  if (!load.mayJump && (await findJumps(trx, jumpFactor))) {
    if (problems.rejects) await rejectJumpingValues(trx, jumpFactor);
    await rejectJumps(context, jumpFactor);
  }
  await dropRejected(context);
}

const listed = <T>(all: readonly T[]): Listed<T> => ({
  total: all.length,
  shown: all.slice(0, PREVIEW_MAX),
});

/** Assembles the preview of a classified load. */
async function previewOf(trx: Trx, load: Load): Promise<LoadPreview> {
  const { currencies, prices, counts } = load;
  const created = prices.created.map(({ code, attributes }) => ({
    code,
    name: attributes['name'] ?? null,
  }));
  const names = prices.newNames.map(({ record }) => ({
    kind: record.kind === 'product' ? record.kind : record.dimension,
    name: record.name,
  }));
  const again = await listChanges(trx, 'new');
  return {
    newPrices: listed(created),
    changedPrices: listed(prices.changes),
    newNames: listed(names),
    newCurrencies: currencies,
    newValues: { ...(await listNewValues(trx)), values: counts.inserted },
    corrections: await listChanges(trx, 'changed'),
    again: {
      total: again.total,
      shown: again.shown.map(({ before: _, ...value }) => value),
    },
    unchanged: counts.unchanged,
    outdated: counts.outdated,
    rejected: counts.rejected,
  };
}

/**
 * Classifies a staged load and reports all of its problems. Writes nothing to the database.
 * @throws LoadRefused if a problem refuses the load
 */
export async function classifyLoad(trx: Trx, load: Load): Promise<void> {
  const { format, problems, request, descriptions } = load;
  const context = { trx, target: load.target, problems, places: load.places };
  await resolveSeries(trx, load.series, load.ranges, descriptions, load.target);
  if (format.source) await classifyCurrencies(context, load);
  load.prices = await classifyPrices(trx, descriptions, load.mayCorrect, problems);
  if (!format.source) await checkDescriptions(context, load);
  await checkQuotations(trx, load, problems);
  await compare(context, load);
  if (!problems.rejects && problems.refuses) {
    problems.rejected = load.rowsRead - load.rows + (await countFaulty(context, load.mayCorrect));
  }
  load.counts = {
    rows: load.rowsRead,
    ...(await countValues(trx)),
    rejected: problems.rejected,
    pricesAdded: load.prices.created.length,
    pricesChanged: load.prices.changed.length,
  };
  load.preview = await previewOf(trx, load);
  await request.onPreview?.(load.preview);
  if (problems.refuses) throw new LoadRefused();
}

/** True if a classified load changes anything. */
export const changesAnything = ({ currencies, prices, counts }: Load): boolean =>
  currencies.length +
    prices.newNames.length +
    prices.created.length +
    prices.changed.length +
    counts.inserted +
    counts.corrected +
    (counts.withdrawn ?? 0) >
  0;
