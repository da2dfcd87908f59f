import { sql } from 'kysely';
import { type Classified, compareValues, countValues } from './classify.ts';
import { currencyName } from './formats/currencies.ts';
import type { Format, RateSource } from './formats/format.ts';
import { findJumps, leaveOutJumps } from './jumps.ts';
import type { BatchEntry } from './ledger.ts';
import { type LoadPreview, previewOf } from './preview.ts';
import { type PricePlan, planPrices } from './price-plan.ts';
import type { Trx } from './reference.ts';
import type { Problems } from './rejects/problems.ts';
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
import { markCareful, resolveSubjects } from './staging/resolve.ts';
import type { Staged } from './staging/stage.ts';
import { POINTS, ratesOf, type Target } from './targets.ts';
import { checkTerms } from './terms.ts';

/** What a load may do, as its caller has asked for it. */
interface Permissions {
  /** Whether published values may change: permission and reason were given. */
  readonly corrections: boolean;
  /** Whether values may differ from their neighbours as much as they like. */
  readonly jumps: boolean;
  /** How much they may differ otherwise: a factor, as decimal text. */
  readonly jumpFactor: string;
}

/** What the apply step works on. */
export interface ApplyInput {
  readonly format: Format;
  readonly staged: Staged;
  readonly entry: Omit<BatchEntry, 'counts'>;
  readonly permissions: Permissions;
  readonly problems: Problems;
  /** Told what the load will do, once that is known and before anything is written. */
  readonly onPreview: (preview: LoadPreview) => Promise<void>;
}

/** Everything that a load would do, found out before anything is written. */
export interface Plan {
  readonly target: Target;
  readonly source: RateSource | null;
  readonly currencies: readonly string[];
  readonly prices: PricePlan;
  readonly values: Classified;
  readonly preview: LoadPreview;
}

/** Ends the transaction without a trace; the problems say why. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Rejects rates of what is no currency; returns the currencies that have to be added. */
async function planCurrencies({ trx, ...rules }: Rules, staged: Staged): Promise<string[]> {
  const rows = await trx.selectFrom('currency').select('iso').execute();
  const known = rows.map(({ iso }) => iso);
  const missing = staged.subjects.names.filter((iso) => !known.includes(iso));
  const added = missing.filter((iso) => currencyName(iso) !== undefined);
  await sql`update pg_temp.load_subject set described = true where name = any(${added})`.execute(
    trx,
  );
  await rejectUnknown({ trx, ...rules }, 'unknown_currency', async () => known);
  return added;
}

/** Finds out what becomes of the prices that the file describes, and rejects unknown codes. */
async function planDescriptions(
  rules: Rules,
  staged: Staged,
  isPermitted: boolean,
): Promise<PricePlan> {
  const { trx, problems } = rules;
  const plan = await planPrices(trx, staged.descriptions, isPermitted, problems);
  if (plan.failed.size > 0) {
    const numbers = [...plan.failed.keys()];
    const lines = numbers.map((number) => {
      const { file, line } = staged.descriptions.prices.get(number) ?? {};
      // Values stand beside a description only where it stands in the file that is loaded.
      return file === undefined ? (line ?? null) : null;
    });
    await sql`
      update pg_temp.load_subject u set rejected_line = f.line, is_refused = u.id is null,
        described = u.described and ${problems.sink === null}
      from unnest(${numbers}::integer[], ${lines}::bigint[]) as f (subject, line)
      where f.subject = u.subject`.execute(trx);
  }
  await rejectUnknown(rules, 'unknown_code', async () => {
    const codes = await trx.selectFrom('price').select('code').execute();
    return codes.map(({ code }) => code);
  });
  return plan;
}

/** Compares what has to be compared, and rejects what may not be loaded. */
async function compare(rules: Rules, input: ApplyInput, prices: PricePlan): Promise<void> {
  const { trx, target, problems } = rules;
  const { permissions, format, entry } = input;
  const { jumps: acceptsJumps, jumpFactor } = permissions;
  if (!(await markCareful(trx, target, { acceptsJumps }))) return;
  const edition = { lineage: format.lineage, vintage: entry.vintage };
  await compareValues(trx, target, edition, { withFixed: !acceptsJumps });
  await rejectUndescribed(rules, prices.failed);
  await rejectDuplicates(rules);
  if (!permissions.corrections) await rejectCorrections(rules);
  if (!acceptsJumps && (await findJumps(trx, jumpFactor))) {
    if (problems.sink) await leaveOutJumps(trx, jumpFactor);
    await rejectJumps(rules, jumpFactor);
  }
  await dropRejected(rules);
}

/**
 * Finds out what a load would do, and everything that is against it.
 * @throws Refused when something is
 */
export async function planOf(trx: Trx, input: ApplyInput): Promise<Plan> {
  const { format, staged, permissions, problems } = input;
  const source = format.source ?? null;
  const target = source ? ratesOf(source) : POINTS;
  const rules = { trx, target, problems, places: staged.places };
  await resolveSubjects(trx, staged, target);
  const currencies = source ? await planCurrencies(rules, staged) : [];
  const prices = source
    ? await planPrices(trx, staged.descriptions, false, problems)
    : await planDescriptions(rules, staged, permissions.corrections);
  await checkTerms(trx, staged, problems);
  await compare(rules, input, prices);
  if (!problems.sink && problems.refuses) {
    const wrongInFile = staged.rowsRead - staged.rows;
    problems.rejected = wrongInFile + (await countFaulty(rules, permissions.corrections));
  }
  const values = await countValues(trx);
  const { rejected } = problems;
  const preview = await previewOf(trx, { currencies, prices, values, rejected });
  await input.onPreview(preview);
  if (problems.refuses) throw new Refused();
  return { target, source, currencies, prices, values, preview };
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
