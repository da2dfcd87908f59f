import type { Trx } from '../descriptions/known-names.ts';
import { currencyName } from '../descriptions/new-names.ts';
import { classifyPrices, type PriceChanges } from '../descriptions/prices.ts';
import { problemOf } from '../records/load-error.ts';
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
import { type ClassifiedLoad, LoadRefused, type StagedLoad } from './phases.ts';
import type { LoadPreview, LoadRequest } from './request.ts';

/** A staged load in the transaction that classifies it, and the permissions of its request. */
interface Classifying extends RejectionContext, StagedLoad {
  readonly mayCorrect: boolean;
  /** Largest factor between neighbouring values; null if values may jump. */
  readonly jumpFactor: string | null;
}

/**
 * Classifies a staged load and reports all of its problems. Writes nothing to the database.
 * @throws LoadRefused if a problem refuses the load
 */
export async function classify(
  trx: Trx,
  staged: StagedLoad,
  { allowCorrections, acceptJumps, jumpFactor, previewAll, onPreview }: LoadRequest,
): Promise<ClassifiedLoad> {
  const { format, problems, descriptions, rowsRead, rows } = staged;
  const mayCorrect = allowCorrections === true && staged.reason !== null;
  const load = { ...staged, trx, mayCorrect, jumpFactor: acceptJumps ? null : jumpFactor };
  if (rowsRead === 0 && descriptions.count === 0 && problems.total === 0) {
    problems.refuse(problemOf('empty_file', 'The file holds no values', {}));
  }
  await resolveSeries(trx, staged, staged.target);
  const currencies = format.source ? await classifyCurrencies(load) : [];
  const prices = await classifyPrices(trx, descriptions, mayCorrect, problems);
  if (!format.source) await checkDescriptions(load, prices);
  await checkQuotations(trx, staged, problems);
  await compare(load, prices);
  if (!problems.rejects && problems.refuses) {
    problems.rejected = rowsRead - rows + (await countFaulty(load, mayCorrect));
  }
  const counts = {
    rows: rowsRead,
    ...(await countValues(trx)),
    rejected: problems.rejected,
    pricesAdded: prices.created.length,
    pricesChanged: prices.changed.length,
  };
  const preview = await previewOf(
    trx,
    { currencies, prices, counts },
    previewAll ? null : PREVIEW_MAX,
  );
  await onPreview?.(preview);
  if (problems.refuses) throw new LoadRefused({ ...staged, preview });
  return { ...staged, currencies, prices, counts, preview };
}

/** Rejects rates of unknown currencies. @returns the currencies to add */
async function classifyCurrencies(load: Classifying): Promise<string[]> {
  const { trx } = load;
  const rows = await trx.selectFrom('currency').select('iso').execute();
  const known = rows.map(({ iso }) => iso);
  const missing = load.series.names.filter((iso) => !known.includes(iso));
  const currencies = missing.filter((iso) => currencyName(iso) !== undefined);
  await markDescribed(trx, currencies);
  await rejectUnknown(load, 'unknown_currency', async () => known);
  return currencies;
}

/** The codes of all prices. */
export async function codesOf(trx: Trx): Promise<string[]> {
  const rows = await trx.selectFrom('price').select('code').execute();
  return rows.map(({ code }) => code);
}

/** Marks prices whose descriptions were rejected, and rejects unknown codes. */
async function checkDescriptions(load: Classifying, { failed }: PriceChanges): Promise<void> {
  const { trx, problems, descriptions } = load;
  if (failed.size > 0) {
    const numbers = [...failed.keys()];
    const lines = numbers.map((number) => {
      const { file, line } = descriptions.prices.get(number) ?? {};
      // Only a description in the loaded file has values in its row.
      return file === undefined ? (line ?? null) : null;
    });
    await markRefused(trx, numbers, lines, problems.rejects === null);
  }
  await rejectUnknown(load, 'unknown_code', () => codesOf(trx));
}

/** Compares values where needed and rejects invalid ones. */
async function compare(load: Classifying, { failed }: PriceChanges): Promise<void> {
  const { trx, problems, jumpFactor, mayCorrect } = load;
  const compared = jumpFactor === null ? 'conflicts' : 'conflicts and jumps';
  if (!(await markForComparison(trx, load.target, compared))) return;
  await compareValues(trx, load, compared);
  if (failed.size > 0) await rejectUndescribed(load);
  await rejectDuplicates(load);
  if (!mayCorrect) await rejectCorrections(load);
  if (jumpFactor !== null && (await findJumps(trx, jumpFactor))) {
    if (problems.rejects) await rejectJumpingValues(trx, jumpFactor);
    await rejectJumps(load, jumpFactor);
  }
  await dropRejected(load);
}

const listed = <T>(all: readonly T[], most: number | null): Listed<T> => ({
  total: all.length,
  shown: most === null ? all : all.slice(0, most),
});

/**
 * Assembles the preview of a classified load.
 * @param most entries of each list; null for all
 */
async function previewOf(
  trx: Trx,
  { currencies, prices, counts }: Pick<ClassifiedLoad, 'currencies' | 'prices' | 'counts'>,
  most: number | null,
): Promise<LoadPreview> {
  const created = prices.created.map(({ code, attributes }) => ({
    code,
    name: attributes['name'] ?? null,
  }));
  const names = prices.newNames.map(({ record }) => ({
    kind: record.kind === 'product' ? record.kind : record.dimension,
    name: record.name,
  }));
  const again = await listChanges(trx, 'new', most);
  return {
    newPrices: listed(created, most),
    changedPrices: listed(prices.changes, most),
    newNames: listed(names, most),
    newCurrencies: currencies,
    newValues: { ...(await listNewValues(trx, most)), values: counts.inserted },
    corrections: await listChanges(trx, 'changed', most),
    again: {
      total: again.total,
      shown: again.shown.map(({ before: _, ...value }) => value),
    },
    unchanged: counts.unchanged,
    outdated: counts.outdated,
    rejected: counts.rejected,
  };
}
