import { sql } from 'kysely';
import {
  type Classified,
  classify,
  rejectCorrections,
  rejectDuplicates,
  rejectUnknown,
  resolveSubjects,
} from './classify.ts';
import { currencyName } from './currencies.ts';
import type { Format, RateSource } from './format.ts';
import type { BatchEntry } from './ledger.ts';
import { type PricePlan, planPrices } from './prices.ts';
import type { Problems } from './problems.ts';
import type { Trx } from './reference.ts';
import type { Staged } from './stage.ts';
import { POINTS, ratesOf, type Target } from './targets.ts';

/** What the apply step works on. */
export interface ApplyInput {
  readonly format: Format;
  readonly staged: Staged;
  readonly entry: Omit<BatchEntry, 'counts'>;
  /** Whether published values may change: permission and reason were given. */
  readonly isPermitted: boolean;
  readonly problems: Problems;
}

/** Everything that a load would do, found out before anything is written. */
export interface Plan {
  readonly target: Target;
  readonly source: RateSource | null;
  readonly currencies: readonly string[];
  readonly prices: PricePlan;
  readonly values: Classified;
}

/** Ends the transaction without a trace; the problems say why. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Rejects rates of what is no currency; returns the currencies that have to be added. */
async function planCurrencies(trx: Trx, staged: Staged, problems: Problems): Promise<string[]> {
  const rows = await trx.selectFrom('currency').select('iso').execute();
  const known = new Set(rows.map(({ iso }) => iso));
  const missing = staged.subjects.names.filter((iso) => !known.has(iso));
  const added = missing.filter((iso) => currencyName(iso) !== undefined);
  await sql`update pg_temp.load_subject set described = true where name = any(${added})`.execute(
    trx,
  );
  if (added.length < missing.length) await rejectUnknown(trx, 'unknown_currency', known, problems);
  return added;
}

async function rejectUnknownCodes(trx: Trx, problems: Problems): Promise<void> {
  const unknown = await sql`
    select from pg_temp.load_subject where id is null and not described limit 1`.execute(trx);
  if (unknown.rows.length === 0) return;
  const codes = await trx.selectFrom('price').select('code').execute();
  await rejectUnknown(
    trx,
    'unknown_code',
    codes.map(({ code }) => code),
    problems,
  );
}

/**
 * Finds out what a load would do, and everything that is against it.
 * @throws Refused when something is
 */
export async function planOf(trx: Trx, input: ApplyInput): Promise<Plan> {
  const { format, staged, isPermitted, problems, entry } = input;
  const source = format.source ?? null;
  const target = source ? ratesOf(source) : POINTS;
  await resolveSubjects(trx, staged, target);
  const currencies = source ? await planCurrencies(trx, staged, problems) : [];
  const prices = await planPrices(trx, staged.descriptions, isPermitted, problems);
  if (!source) await rejectUnknownCodes(trx, problems);
  await rejectDuplicates(trx, problems);
  const { vintage } = entry;
  const values = await classify(trx, staged, target, { lineage: format.lineage, vintage });
  if (values.corrected > 0 && !isPermitted) await rejectCorrections(trx, problems);
  if (problems.total > 0) throw new Refused();
  return { target, source, currencies, prices, values };
}

/** Whether there is anything to write. */
export const changesAnything = ({ currencies, prices, values }: Plan): boolean =>
  currencies.length +
    prices.newRows.length +
    prices.created.length +
    prices.changed.length +
    values.inserted +
    values.corrected >
  0;
