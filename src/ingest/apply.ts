import { type Kysely, sql } from 'kysely';
import { inApplyTransaction, openRevision } from '../db/connection.ts';
import { headOf, revisionText } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import {
  type Classified,
  classify,
  rejectCorrections,
  rejectDuplicates,
  rejectUnknown,
  resolveCreated,
  resolveSubjects,
} from './classify.ts';
import { currencyName, writeCurrencies, writeSource } from './currencies.ts';
import type { Format, RateSource } from './format.ts';
import {
  type BatchEntry,
  type EarlierBatch,
  earlierBatch,
  type LoadCounts,
  nextBatch,
  writeBatch,
  writeCoverage,
} from './ledger.ts';
import { type PricePlan, planPrices, writePrices } from './prices.ts';
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

export interface Applied {
  readonly status: 'applied' | 'unchanged' | 'already-loaded';
  readonly batch: number;
  /** On the wire form, `<epoch>.<number>`; null when nothing changed. */
  readonly revision: string | null;
  readonly vintage: string | null;
  readonly counts: LoadCounts;
}

/** Everything that a load would do, found out before anything is written. */
interface Plan {
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

export const NO_COUNTS: LoadCounts = {
  rows: 0,
  inserted: 0,
  unchanged: 0,
  corrected: 0,
  outdated: 0,
  rejected: 0,
  pricesAdded: 0,
  pricesChanged: 0,
};

/** A file that an earlier batch loaded changes nothing. */
export const alreadyLoaded = ({ id, vintage }: EarlierBatch): Applied => ({
  status: 'already-loaded',
  batch: id,
  revision: null,
  vintage,
  counts: NO_COUNTS,
});

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
async function planOf(trx: Trx, input: ApplyInput): Promise<Plan> {
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

const changesAnything = ({ currencies, prices, values }: Plan): boolean =>
  currencies.length +
    prices.newRows.length +
    prices.created.length +
    prices.changed.length +
    values.inserted +
    values.corrected >
  0;

/** Writes the plan in one revision, which it returns as text. */
async function write(trx: Trx, plan: Plan, batch: number, input: ApplyInput): Promise<string> {
  const { target, values } = plan;
  const { startedAt, reason, format, fileName, vintage } = input.entry;
  const number = await openRevision(trx, reason ?? `load ${format} ${fileName}`);
  await writeCurrencies(trx, plan.currencies);
  if (plan.source) await writeSource(trx, plan.source);
  await writePrices(trx, plan.prices, input.problems);
  await resolveCreated(trx, target);
  const inserted = await target.insert(batch, startedAt).execute(trx);
  const correctedAt = input.format.correctedAt === 'vintage' ? vintage : null;
  const corrected = await target.correct(batch, correctedAt, startedAt).execute(trx);
  const written = [Number(inserted.numAffectedRows), Number(corrected.numAffectedRows)];
  if (written[0] !== values.inserted || written[1] !== values.corrected) {
    throw new Error(`wrote ${written.join(' and ')} rows where others were planned`);
  }
  return number;
}

/**
 * Brings staged values into the database: one transaction, under the one lock of all writers, so
 * that what was compared is still so when it is written.
 * @throws Refused after a rollback, with the reasons in `input.problems`
 */
export const apply = (db: Kysely<Database>, input: ApplyInput): Promise<Applied> =>
  inApplyTransaction(db, async (trx) => {
    await sql`set local synchronous_commit = on`.execute(trx);
    const { entry, staged } = input;
    const earlier = await earlierBatch(trx, entry);
    if (earlier) return alreadyLoaded(earlier);
    const plan = await planOf(trx, input);
    const batch = await nextBatch(trx);
    const number = changesAnything(plan) ? await write(trx, plan, batch, input) : null;
    const counts: LoadCounts = {
      rows: staged.rows,
      ...plan.values,
      rejected: 0,
      pricesAdded: plan.prices.created.length,
      pricesChanged: plan.prices.changed.length,
    };
    await writeBatch(trx, batch, 'applied', number, { ...entry, counts });
    if (entry.vintage !== null) await writeCoverage(trx, batch, plan.target);
    const revision =
      number === null ? null : revisionText({ ...(await headOf(trx, [])), revision: number });
    const status = number === null ? 'unchanged' : 'applied';
    return { status, batch, revision, vintage: entry.vintage, counts };
  });
