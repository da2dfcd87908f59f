import { sql } from 'kysely';
import { compareValues, countValues } from './classify.ts';
import { currencyName } from './formats/currencies.ts';
import { findJumps, leaveOutJumps } from './jumps.ts';
import { previewOf } from './preview.ts';
import { planPrices } from './price-plan.ts';
import type { Trx } from './reference.ts';
import {
  countFaulty,
  dropRejected,
  type Rules,
  rejectCorrections,
  rejectDuplicates,
  rejectJumps,
  rejectUndescribed,
  rejectUnknown,
} from './rejects/rejections.ts';
import type { Load } from './request.ts';
import { markCareful, resolveSubjects } from './staging/resolve.ts';
import { checkTerms } from './terms.ts';

/** Ends the transaction without a trace; the problems say why. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Rejects rates of what is no currency, and finds the currencies that have to be added. */
async function planCurrencies(rules: Rules, load: Load): Promise<void> {
  const { trx } = rules;
  const rows = await trx.selectFrom('currency').select('iso').execute();
  const known = rows.map(({ iso }) => iso);
  const missing = load.subjects.names.filter((iso) => !known.includes(iso));
  load.currencies = missing.filter((iso) => currencyName(iso) !== undefined);
  await sql`
    update pg_temp.load_subject set described = true
    where name = any(${load.currencies})`.execute(trx);
  await rejectUnknown(rules, 'unknown_currency', async () => known);
}

/** The codes of all prices. */
export async function codesOf(trx: Trx): Promise<string[]> {
  const rows = await trx.selectFrom('price').select('code').execute();
  return rows.map(({ code }) => code);
}

/** Marks the prices whose descriptions cannot be taken, and rejects unknown codes. */
async function checkDescribed(rules: Rules, { prices, descriptions }: Load): Promise<void> {
  const { trx, problems } = rules;
  if (prices.failed.size > 0) {
    const numbers = [...prices.failed.keys()];
    const lines = numbers.map((number) => {
      const { file, line } = descriptions.prices.get(number) ?? {};
      // Values stand beside a description only where it stands in the file that is loaded.
      return file === undefined ? (line ?? null) : null;
    });
    await sql`
      update pg_temp.load_subject u set rejected_line = f.line, is_refused = u.id is null,
        described = u.described and ${problems.sink === null}
      from unnest(${numbers}::integer[], ${lines}::bigint[]) as f (subject, line)
      where f.subject = u.subject`.execute(trx);
  }
  await rejectUnknown(rules, 'unknown_code', () => codesOf(trx));
}

/** Compares what has to be compared, and rejects what may not be loaded. */
async function compare(rules: Rules, load: Load): Promise<void> {
  const { trx, problems } = rules;
  const { jumpFactor } = load.request;
  if (!(await markCareful(trx, load))) return;
  await compareValues(trx, load);
  await rejectUndescribed(rules, load.prices.failed);
  await rejectDuplicates(rules);
  if (!load.mayCorrect) await rejectCorrections(rules);
  if (!load.mayJump && (await findJumps(trx, jumpFactor))) {
    if (problems.sink) await leaveOutJumps(trx, jumpFactor);
    await rejectJumps(rules, jumpFactor);
  }
  await dropRejected(rules);
}

/**
 * Finds out what a staged load would do, and everything that is against it, before anything is
 * written.
 * @throws Refused when something is
 */
export async function planLoad(trx: Trx, load: Load): Promise<void> {
  const { format, problems, request, descriptions } = load;
  const rules = { trx, target: load.target, problems, places: load.places };
  await resolveSubjects(trx, load);
  if (format.source) await planCurrencies(rules, load);
  load.prices = await planPrices(trx, descriptions, load.mayCorrect && !format.source, problems);
  if (!format.source) await checkDescribed(rules, load);
  await checkTerms(trx, load, problems);
  await compare(rules, load);
  if (!problems.sink && problems.refuses) {
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
  if (problems.refuses) throw new Refused();
}

/** Whether a planned load changes anything. */
export const changesAnything = ({ currencies, prices, counts }: Load): boolean =>
  currencies.length +
    prices.newRows.length +
    prices.created.length +
    prices.changed.length +
    counts.inserted +
    counts.corrected +
    (counts.withdrawn ?? 0) >
  0;
