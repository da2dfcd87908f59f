import { currencyName } from '../descriptions/new-names.ts';
import { classifyPrices } from '../descriptions/prices.ts';
import type { Trx } from '../descriptions/reference.ts';
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
import { markDescribed, markRefused, resolveSeries } from '../staging/series.ts';
import type { Load, LoadPreview } from './request.ts';

/** Ends the transaction without a trace; the problems say why. */
export class LoadRefused extends Error {
  override readonly name = 'Refused';
}

/** RejectsFile rates of what is no currency, and finds the currencies that have to be added. */
async function classifyCurrencies(rules: RejectionContext, load: Load): Promise<void> {
  const { trx } = rules;
  const rows = await trx.selectFrom('currency').select('iso').execute();
  const known = rows.map(({ iso }) => iso);
  const missing = load.series.names.filter((iso) => !known.includes(iso));
  load.currencies = missing.filter((iso) => currencyName(iso) !== undefined);
  await markDescribed(trx, load.currencies);
  await rejectUnknown(rules, 'unknown_currency', async () => known);
}

/** The codes of all prices. */
export async function codesOf(trx: Trx): Promise<string[]> {
  const rows = await trx.selectFrom('price').select('code').execute();
  return rows.map(({ code }) => code);
}

/** Marks the prices whose descriptions cannot be taken, and rejects unknown codes. */
async function checkDescriptions(
  rules: RejectionContext,
  { prices, descriptions }: Load,
): Promise<void> {
  const { trx, problems } = rules;
  if (prices.failed.size > 0) {
    const numbers = [...prices.failed.keys()];
    const lines = numbers.map((number) => {
      const { file, line } = descriptions.prices.get(number) ?? {};
      // Values stand beside a description only where it stands in the file that is loaded.
      return file === undefined ? (line ?? null) : null;
    });
    await markRefused(trx, numbers, lines, problems.rejects === null);
  }
  await rejectUnknown(rules, 'unknown_code', () => codesOf(trx));
}

/** Compares what has to be compared, and rejects what may not be loaded. */
async function compare(rules: RejectionContext, load: Load): Promise<void> {
  const { trx, problems } = rules;
  const { jumpFactor } = load.request;
  if (!(await markForComparison(trx, load))) return;
  await compareValues(trx, load);
  if (load.prices.failed.size > 0) await rejectUndescribed(rules);
  await rejectDuplicates(rules);
  if (!load.mayCorrect) await rejectCorrections(rules);
  if (!load.mayJump && (await findJumps(trx, jumpFactor))) {
    if (problems.rejects) await rejectJumpingValues(trx, jumpFactor);
    await rejectJumps(rules, jumpFactor);
  }
  await dropRejected(rules);
}

const listed = <T>(all: readonly T[]): Listed<T> => ({
  total: all.length,
  shown: all.slice(0, PREVIEW_MAX),
});

/** Puts together what a load will do, from its plan and the staging tables. */
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
 * Finds out what a staged load would do, and everything that is against it, before anything is
 * written.
 * @throws LoadRefused when something is
 */
export async function classifyLoad(trx: Trx, load: Load): Promise<void> {
  const { format, problems, request, descriptions } = load;
  const rules = { trx, target: load.target, problems, places: load.places };
  await resolveSeries(trx, load.series, load.ranges, descriptions, load.target);
  if (format.source) await classifyCurrencies(rules, load);
  load.prices = await classifyPrices(trx, descriptions, load.mayCorrect, problems);
  if (!format.source) await checkDescriptions(rules, load);
  await checkQuotations(trx, load, problems);
  await compare(rules, load);
  if (!problems.rejects && problems.refuses) {
    problems.rejected = load.rowsRead - load.rows + (await countFaulty(rules, load.mayCorrect));
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

/** Whether a planned load changes anything. */
export const changesAnything = ({ currencies, prices, counts }: Load): boolean =>
  currencies.length +
    prices.newNames.length +
    prices.created.length +
    prices.changed.length +
    counts.inserted +
    counts.corrected +
    (counts.withdrawn ?? 0) >
  0;
