import {
  type EvaluationStep,
  evaluated,
  type FormulaUnits,
  unitsOf,
} from '../../calculation/evaluate.ts';
import { FormulaError } from '../../calculation/formula.ts';
import { exactText, roundedTo, TooLongError } from '../../calculation/fraction.ts';
import { isSameUnit, ONE, type UnitProduct, unitText } from '../../calculation/unit.ts';
import { SESSIONS_MAX } from '../../contract/schemas/calculations.ts';
import type { Rational } from '../../conversion/rational.ts';
import { BY_RULE, roundingText } from '../../conversion/rounding.ts';
import { revisionText } from '../../db/revisions.ts';
import { brokenRules, type Violation } from '../../errors.ts';
import { dayText } from '../../std/days.ts';
import { decimalText } from '../../std/decimal.ts';
import { Slice } from '../../std/turns.ts';
import type { Readers } from '../answer/answer.ts';
import type { Warning } from '../answer/warnings.ts';
import type { References } from '../market/references.ts';
import type { CalculationData } from './data.ts';
import {
  type InputResult,
  NumberText,
  type Reason,
  type Status,
  shownExact,
  shownNumber,
  statusOf,
} from './input-result.ts';
import type { CalculationPlan } from './plan.ts';
import { SessionsMissingError } from './price-input.ts';
import { preparedInputs, type ReadyInput } from './ready.ts';
import { unitOf } from './units.ts';

/** The result for one anchor. */
export interface CalculationResult {
  readonly anchor: string | null;
  readonly value: NumberText | null;
  readonly exact: string | null;
  readonly unit: string;
  readonly status: Status;
  readonly reasons: readonly Reason[];
  readonly formula: string;
  readonly inputs: readonly InputResult[];
  readonly steps: readonly Readonly<Record<string, unknown>>[];
  readonly rounding: string;
}

export interface CalculationAnswer {
  readonly metadata: {
    readonly revision: string;
    readonly asOf: string;
    readonly warnings: readonly Warning[];
  };
  readonly plan: CalculationPlan;
  /** The names of the inputs, in the order of the request. */
  readonly names: readonly string[];
  readonly results: readonly CalculationResult[];
}

/**
 * Computes a calculation from data at one revision: points come from the readers of market answers,
 * and are converted by their rules.
 * @throws Problem `validation_failed` with the violations against the data; errors of the database
 */
export async function calculationAt(
  readers: Readers,
  plan: CalculationPlan,
  data: CalculationData,
): Promise<CalculationAnswer> {
  const parts = await Promise.all(
    data.plans.map(async (each) => {
      const prepared = await preparedInputs(readers, each, data);
      const context = { plan: each, ...checkedUnits(each, prepared.units, data.references) };
      const { warnings } = prepared;
      return { context, warnings, inputs: await prepared.read(), anchors: each.anchors };
    }),
  );
  checkOneUnit(parts.map(({ context }) => context.unit));
  checkSessions(parts);
  const results: CalculationResult[] = [];
  const slice = new Slice();
  for (const { context, inputs, anchors } of parts) {
    for (const anchor of anchors) {
      if (slice.isOver) await slice.yieldIfOver();
      results.push(resultAt(context, inputs, anchor));
    }
  }
  const { committedAt } = data.data;
  const warnings = distinct(parts.flatMap((each) => each.warnings));
  const metadata = { revision: revisionText(data.data), asOf: committedAt, warnings };
  const names = parts[0]?.inputs.map(({ name }) => name) ?? [];
  return { metadata, plan, names, results };
}

/** Warnings without those that another part of the anchors has too. */
const distinct = (warnings: readonly Warning[]): readonly Warning[] => [
  ...new Map(warnings.map((each) => [JSON.stringify(each), each])).values(),
];

/** The violation of a formula, or the error itself. */
function formulaProblem(error: unknown, anchor: number | null): unknown {
  if (!(error instanceof FormulaError)) return error;
  const at = anchor === null ? '' : `; the anchor is ${dayText(anchor)}`;
  return brokenRules([{ pointer: '/formula', code: error.code, detail: `${error.message}${at}` }]);
}

/** The violation of references in different units, or the error itself. */
function unitsProblem(error: unknown, inputs: ReadonlyMap<string, UnitProduct>): unknown {
  if (!(error instanceof FormulaError)) return error;
  // Payables and contents are plain numbers.
  const units = new Set(
    [...inputs.values()].filter((each) => !isSameUnit(each, ONE)).map(unitText),
  );
  const detail =
    `The references are in ${[...units].join(' and ')}, which have no sum; ` +
    'set unitOfMeasure and currency to convert them';
  return brokenRules([{ pointer: '/unitOfMeasure', code: error.code, detail }]);
}

/** Checks the units of a formula, and that of its result. */
function checkedUnits(
  plan: CalculationPlan,
  inputs: ReadonlyMap<string, UnitProduct>,
  references: References,
) {
  const broken: Violation[] = [];
  const wanted = plan.unit === null ? null : unitOf(plan.unit, '/result/unit', references, broken);
  if (broken.length > 0) throw brokenRules(broken);
  let found: ReturnType<typeof unitsOf>;
  try {
    found = unitsOf(plan.formula.node, inputs);
  } catch (error) {
    throw plan.references === null ? formulaProblem(error, null) : unitsProblem(error, inputs);
  }
  if (wanted !== null && !isSameUnit(wanted, found.unit)) {
    const detail = `The formula gives ${unitText(found.unit)}, not ${unitText(wanted)}`;
    throw brokenRules([{ pointer: '/result/unit', code: 'unit_mismatch', detail }]);
  }
  return found;
}

/** Rejects a series whose results are in different units: a reference changed to another one. */
function checkOneUnit(units: readonly UnitProduct[]): void {
  const [first] = units;
  const other = units.find((unit) => first !== undefined && !isSameUnit(unit, first));
  if (first === undefined || other === undefined) return;
  const detail =
    `The references of some anchors give ${unitText(first)}, and of others ${unitText(other)}; ` +
    'unitOfMeasure and currency convert the references';
  throw brokenRules([{ pointer: '/unitOfMeasure', code: 'unit_mismatch', detail }]);
}

/** Rejects a request for too many sessions. */
function checkSessions(
  parts: readonly Readonly<
    Record<'inputs', readonly ReadyInput[]> & Pick<CalculationPlan, 'anchors'>
  >[],
): void {
  let sessions = 0;
  for (const { inputs, anchors } of parts) {
    for (const { countAt } of inputs) {
      for (const anchor of anchors) sessions += countAt(anchor);
    }
  }
  if (sessions <= SESSIONS_MAX) return;
  const detail =
    `The inputs use ${sessions} sessions, at most ${SESSIONS_MAX} are allowed; shorten periods, ` +
    'or ask for fewer anchors';
  throw brokenRules([{ pointer: '/inputs', code: 'out_of_range', detail }]);
}

/** Computes one input for an anchor. @throws Problem for an exact value with too many digits */
function inputAt(input: ReadyInput, anchor: number | null): InputResult {
  try {
    return input.at(anchor);
  } catch (error) {
    if (error instanceof SessionsMissingError) {
      const pointer = `${input.pointer}/missing`;
      throw brokenRules([{ pointer, code: 'sessions_missing', detail: error.message }]);
    }
    if (!(error instanceof TooLongError)) throw error;
    const detail = 'The exact value has too many digits; shorten the period, or round its sessions';
    throw brokenRules([{ pointer: `${input.pointer}/period`, code: 'out_of_range', detail }]);
  }
}

/** The parts of all results that do not depend on the anchor. */
interface ResultContext {
  readonly plan: CalculationPlan;
  readonly unit: UnitProduct;
  readonly units: FormulaUnits;
}

function evaluatedAt(
  { plan }: ResultContext,
  inputs: readonly InputResult[],
  anchor: number | null,
): { readonly value: Rational | null; readonly steps: readonly EvaluationStep[] } {
  const values = new Map<string, Rational>();
  for (const { name, value } of inputs) {
    if (value === null) return { value: null, steps: [] };
    values.set(name, value);
  }
  try {
    return evaluated(plan.formula.node, values);
  } catch (error) {
    throw formulaProblem(error, anchor);
  }
}

function resultAt(
  context: ResultContext,
  ready: readonly ReadyInput[],
  anchor: number | null,
): CalculationResult {
  const { plan, unit, units } = context;
  const inputs = ready.map((each) => inputAt(each, anchor));
  const { value, steps } = evaluatedAt(context, inputs, anchor);
  const reasons = inputs.flatMap((each) => each.reasons);
  const { text } = plan.formula;
  const { rounding } = plan;
  const shown =
    value === null || rounding === null
      ? shownNumber(value)
      : new NumberText(decimalText(roundedTo(value, rounding)));
  return {
    anchor: anchor === null ? null : dayText(anchor),
    value: shown,
    exact: shownExact(value),
    unit: unitText(unit),
    status: statusOf(reasons),
    reasons,
    formula: text,
    inputs,
    steps: plan.hasReceipt
      ? steps.map(({ node, value: exact }) => ({
          text: text.slice(node.from, node.to),
          exact: exactText(exact),
          unit: unitText(units.get(node) ?? ONE),
        }))
      : [],
    rounding:
      rounding === null ? roundingText(BY_RULE) : `${rounding.mode}, ${rounding.decimals} decimals`,
  };
}
