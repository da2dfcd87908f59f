import {
  type Formula,
  FormulaError,
  inputsOf,
  isInputName,
  parseFormula,
} from '../../calculation/formula.ts';
import type { FixedRounding, RoundingMode } from '../../calculation/fraction.ts';
import {
  isRelative,
  type Period,
  PeriodError,
  parsePeriod,
  realDay,
} from '../../calculation/period.ts';
import { codeKey } from '../../catalog/match-key.ts';
import { type BodyCheck, isMembers, objectCheckOf } from '../../contract/request/validate.ts';
import {
  ANCHORS_MAX,
  Anchors,
  CALCULATION_FORMS,
  INPUTS_MAX,
  NumberInput as NumberSchema,
  PAYABLES_MAX,
  PriceInput as PriceSchema,
  RateInput as RateSchema,
  ValuedPayable,
} from '../../contract/schemas/calculations.ts';
import { escapePointer } from '../../contract/schemas/problem.ts';
import type { ValueName } from '../../conversion/columns.ts';
import { type Rational, rationalText, reduced } from '../../conversion/rational.ts';
import { brokenRules, quoted, type Violation } from '../../errors.ts';
import { calendarDay, dayNumber } from '../../std/days.ts';
import { brokenOptions, optionsOf, type RequestedRevision } from '../plan/options.ts';

/*
 * Calculations: a formula over named inputs, at one revision of several markets.
 *
 *   plan.ts          a validated request (this file)
 *   markets.ts       the market of each code
 *   basis.ts         the molar masses of the short form `convertBasis`
 *   payables.ts      the references of the short form `payables`
 *   data.ts          what is read, at one revision
 *   ready.ts         the inputs: their prices, units and conversions
 *   price-input.ts   the sessions of a price over a period, and its value
 *   rate-input.ts    the same of an exchange rate
 *   units.ts         the units of texts
 *   answer.ts        the results
 *   write.ts         their bytes
 */

/** An input as sent: the pointer of its members is below `pointer`. */
interface SentInput {
  readonly name: string;
  readonly members: Readonly<Record<string, unknown>>;
  readonly pointer: string;
  readonly codePointer: string;
}

interface InputBase {
  readonly name: string;
  readonly pointer: string;
}

type Statistic = 'average' | 'first' | 'last' | 'min' | 'max';
type AverageMethod = 'mean-of-mids' | 'mid-of-rounded-averages';

/** A period as sent, and what it means. */
interface PlannedPeriod {
  readonly text: string;
  readonly period: Period;
}

/** The roundings within an input; null for none. */
interface InputRounding {
  readonly session: number | null;
  readonly average: number | null;
  readonly mode: RoundingMode;
}

/** The substitute for a due day without a session. */
type VatPolicy = 'as-published' | 'exclude';
type MissingPolicy = 'refuse' | 'skip' | 'previous' | 'next';

export interface PriceInput extends InputBase, PlannedPeriod {
  readonly kind: 'price';
  readonly code: string;
  /** The place of the code: another member in a short form. */
  readonly codePointer: string;
  readonly side: ValueName;
  readonly statistic: Statistic;
  readonly currency: string | null;
  readonly unitOfMeasure: string | null;
  readonly vat: VatPolicy;
  readonly missing: MissingPolicy;
  /** Most days between a missing day and its substitute. */
  readonly maxDays: number;
  readonly method: AverageMethod;
  readonly rounding: InputRounding | null;
}

export interface RateInput extends InputBase, PlannedPeriod {
  readonly kind: 'rate';
  readonly rate: string;
  /** The sent text: units of the first for one of the second. */
  readonly quote: string;
  readonly base: string;
}

export interface NumberInput extends InputBase {
  readonly kind: 'number';
  /** In hundredths for `%`. */
  readonly value: Rational;
  /** The sent unit; null for a plain number and for `%`. */
  readonly unit: string | null;
  readonly note: string | null;
}

export type CalculationInput = PriceInput | RateInput | NumberInput;

/** A formula with its text. */
interface PlannedFormula {
  readonly text: string;
  readonly node: Formula;
}

/** The inputs of the references of payables, but for their codes and sides. */
export interface PlannedReferences extends Pick<PriceInput, 'missing' | 'maxDays' | 'vat'> {
  /** Null for the period of the payables. */
  readonly period: PlannedPeriod | null;
  readonly currency: string | null;
  readonly unitOfMeasure: string | null;
}

/** A validated calculation. Only checks against the data can still reject it. */
export interface CalculationPlan {
  readonly formula: PlannedFormula;
  /** In the order of the request. */
  readonly inputs: readonly CalculationInput[];
  /** The basis of `convertBasis`; null in the other forms. */
  readonly basis: string | null;
  /** The references that `payables` adds; null in the other forms. */
  readonly references: PlannedReferences | null;
  /** Day numbers; null for the one result of a request without an anchor. */
  readonly anchors: readonly (number | null)[];
  readonly unit: string | null;
  /** Null for the rule of conversions. */
  readonly rounding: FixedRounding | null;
  readonly requested: RequestedRevision;
  readonly decimalsAsText: boolean;
  readonly hasReceipt: boolean;
}

const CHECKS = {
  inputs: objectCheckOf(CALCULATION_FORMS.inputs),
  average: objectCheckOf(CALCULATION_FORMS.average),
  convertBasis: objectCheckOf(CALCULATION_FORMS.convertBasis),
  payables: objectCheckOf(CALCULATION_FORMS.payables),
} as const;

const checkPrice = objectCheckOf(PriceSchema);
const checkRate = objectCheckOf(RateSchema);
const checkNumber = objectCheckOf(NumberSchema);
const checkAnchors = objectCheckOf(Anchors);
const checkPayable = objectCheckOf(ValuedPayable);

type Members = Readonly<Record<string, unknown>>;

/**
 * The plan of the body of a calculation.
 * @param found violations found earlier, such as those of the query
 * @throws Problem `validation_failed` with every violation
 */
export function calculationPlan(sent: unknown, found: readonly Violation[] = []): CalculationPlan {
  const broken = new Violations();
  broken.found.push(...found);
  if (!isMembers(sent)) {
    broken.add('', 'wrong_type', 'Must be an object');
    throw brokenRules(broken.found);
  }
  const body = withoutNulls(sent);
  const form = formOf(body);
  broken.check(CHECKS[form], body, '');
  broken.throwAny();
  const parts = sentParts(form, body, broken);
  const planned = parts.inputs.flatMap((each) => plannedInput(each, broken) ?? []);
  const inputs = form === 'payables' ? planned.map((each) => withMissing(each, body)) : planned;
  const formula = plannedFormula(parts, broken);
  const [result, options] = [membersIn(body, 'result'), membersIn(body, 'options')];
  broken.found.push(...brokenOptions({ ...options, includeSeries: true }, new Set()));
  const plan = {
    formula: formula ?? { text: '', node: NOTHING },
    inputs,
    basis: parts.basis,
    references: form === 'payables' ? plannedReferences(body, broken) : null,
    anchors: anchorsOf(body['anchor'], broken),
    unit: textIn(result, 'unit'),
    rounding: resultRounding(result, broken),
    requested: optionsOf(options).requested,
    decimalsAsText: options['decimalsAsText'] === true,
    hasReceipt: options['receipt'] !== false,
  };
  checkAnchor(plan, broken);
  broken.throwAny();
  return plan;
}

/** Collects the violations of a request. */
class Violations {
  readonly found: Violation[] = [];

  /** Inputs of a short form share members: one violation is enough. */
  add(pointer: string, code: Violation['code'], detail: string): void {
    if (this.found.some((each) => each.pointer === pointer && each.detail === detail)) return;
    this.found.push({ pointer, code, detail });
  }

  /** Adds the violations of a member object, whose pointers begin at the object. */
  check(check: BodyCheck, members: unknown, pointer: string): boolean {
    const found = check(members);
    this.found.push(...found.map((each) => ({ ...each, pointer: pointer + each.pointer })));
    return found.length === 0;
  }

  /** The result of a parser, or null and a violation. */
  parsed<T>(pointer: string, parse: () => T): T | null {
    try {
      return parse();
    } catch (error) {
      if (error instanceof FormulaError) this.add(pointer, error.code, error.message);
      else if (error instanceof PeriodError) this.add(pointer, 'invalid_format', error.message);
      else throw error;
      return null;
    }
  }

  throwAny(): void {
    if (this.found.length > 0) throw brokenRules(this.found);
  }
}

/** The name of the price input of short forms. */
const SHORT_NAME = 'price';

/** The formula of `convertBasis`: 2 atoms of lithium are in a molecule of lithium carbonate. */
const BASIS_FORMULA = 'price * compound / atoms / perAtom';

/** The inputs of `BASIS_FORMULA` beside the price, which `basis.ts` finds. */
export const BASIS_INPUTS = ['compound', 'atoms', 'perAtom'] as const;

const PRICE_MEMBERS = Object.keys(PriceSchema.properties);

/** The members of a request that are those of its price input. */
const priceMembersOf = (body: Members, code: unknown): Members => ({
  ...Object.fromEntries(Object.entries(body).filter(([name]) => PRICE_MEMBERS.includes(name))),
  code,
});

interface SentCalculation {
  readonly formula: string | null;
  readonly inputs: readonly SentInput[];
  /** The names that a formula may use. */
  readonly names: ReadonlySet<string>;
  readonly basis: string | null;
}

/** A short form as inputs and a formula. */
function shortForm(body: Members, form: 'average' | 'convertBasis'): SentCalculation {
  const isAverage = form === 'average';
  const members = priceMembersOf(body, isAverage ? body['average'] : body['code']);
  return {
    formula: isAverage ? SHORT_NAME : BASIS_FORMULA,
    inputs: [
      { name: SHORT_NAME, members, pointer: '', codePointer: isAverage ? '/average' : '/code' },
    ],
    names: new Set([SHORT_NAME, ...(isAverage ? [] : BASIS_INPUTS)]),
    basis: isAverage ? null : String(body['convertBasis']),
  };
}

/** The names of the inputs of a payable of `payables`, by its place from 1. */
export const payableNames = (place: number) => ({
  payable: `payable${place}`,
  reference: `reference${place}`,
  content: `content${place}`,
});

const CONTENT = /^0*(100(\.0+)?|\d{1,2}(\.\d+)?)$/;
const CONTENT_DETAIL = 'Must be a percentage as a text, such as "18", of at most 100';
const CONTENT_NEEDED =
  'Each of several payables needs its content: their sum is a value for each tonne of the material';

const CODE_TWICE = 'An earlier payable has this code, and both would count; name each payable once';

/** The violation of the content of one of some payables; null if it may be as it is. */
function contentFault(content: unknown, count: number): string | null {
  if (content === undefined) return count > 1 ? CONTENT_NEEDED : null;
  return CONTENT.test(String(content)) ? null : CONTENT_DETAIL;
}

/** The short form `payables`: payable × reference × content, summed. */
function payablesForm(body: Members, broken: Violations): SentCalculation {
  const sent = Array.isArray(body['payables']) ? (body['payables'] as unknown[]) : [];
  if (sent.length === 0 || sent.length > PAYABLES_MAX) {
    const code = sent.length === 0 ? 'too_few_items' : 'too_many_items';
    broken.add('/payables', code, `Must have 1 to ${PAYABLES_MAX} payables`);
  }
  const terms: string[] = [];
  const names = new Set<string>();
  const codes = new Set<string>();
  const inputs = sent.slice(0, PAYABLES_MAX).flatMap((each, index): SentInput[] => {
    const pointer = `/payables/${index}`;
    if (!broken.check(checkPayable, each, pointer)) return [];
    const { content, ...members } = each as Members;
    const key = codeKey(String(members['code']));
    if (codes.has(key)) {
      broken.add(`${pointer}/code`, 'invalid_format', CODE_TWICE);
      return [];
    }
    codes.add(key);
    const fault = contentFault(content, sent.length);
    if (fault !== null) {
      broken.add(`${pointer}/content`, 'invalid_format', fault);
      return [];
    }
    const named = payableNames(index + 1);
    const of =
      content === undefined ? ['payable', 'reference'] : ['payable', 'reference', 'content'];
    const used = of.map((kind) => named[kind as keyof typeof named]);
    terms.push(used.join(' * '));
    for (const name of used) names.add(name);
    const price = { ...members, period: body['period'] };
    const payable = { name: named.payable, members: price, codePointer: `${pointer}/code` };
    const number = { name: named.content, members: { value: content, unit: '%' }, codePointer: '' };
    const made = content === undefined ? [payable] : [payable, number];
    return made.map((input) => ({ ...input, pointer: '' }));
  });
  const isWhole = terms.length > 0 && terms.length === sent.length;
  return isWhole
    ? { formula: terms.join(' + '), inputs, names, basis: null }
    : { formula: null, inputs, names: new Set(), basis: null };
}

const missingIn = (body: Members): MissingPolicy =>
  (body['missing'] as MissingPolicy | undefined) ?? 'refuse';

/** A period of sessions has no substitutes: it counts the published ones. */
export const missingOf = (missing: MissingPolicy, { kind }: Period): MissingPolicy =>
  kind === 'sessions' && missing !== 'refuse' ? 'skip' : missing;

/** An input with the policy that all inputs of `payables` share. */
function withMissing(input: CalculationInput, body: Members): CalculationInput {
  if (input.kind !== 'price') return input;
  const maxDays = (body['maxDays'] as number | undefined) ?? SUBSTITUTE_DAYS;
  return { ...input, missing: missingOf(missingIn(body), input.period), maxDays };
}

function plannedReferences(body: Members, broken: Violations): PlannedReferences {
  const text = textIn(body, 'referencePeriod');
  const period = text === null ? null : broken.parsed('/referencePeriod', () => parsePeriod(text));
  return {
    period: text === null || period === null ? null : { text, period },
    missing: missingIn(body),
    maxDays: (body['maxDays'] as number | undefined) ?? SUBSTITUTE_DAYS,
    currency: textIn(body, 'currency'),
    unitOfMeasure: textIn(body, 'unitOfMeasure'),
    vat: (body['vat'] as VatPolicy | undefined) ?? 'as-published',
  };
}

function sentParts(form: keyof typeof CHECKS, body: Members, broken: Violations): SentCalculation {
  if (form === 'inputs') return sentInputs(body, broken);
  return form === 'payables' ? payablesForm(body, broken) : shortForm(body, form);
}

const NAME_FORM =
  'An input is named by a letter, then up to 31 letters, digits and _; min, max, abs, round, ' +
  'step and if are functions';

/** The inputs of the long form, by their names. */
function sentInputs(body: Members, broken: Violations): SentCalculation {
  const sent = isMembers(body['inputs']) ? body['inputs'] : {};
  const entries = Object.entries(sent);
  const formula = typeof body['formula'] === 'string' ? body['formula'] : null;
  if (entries.length === 0 || entries.length > INPUTS_MAX) {
    const code = entries.length === 0 ? 'too_few_items' : 'too_many_items';
    broken.add('/inputs', code, `Must have 1 to ${INPUTS_MAX} inputs`);
    return { formula, inputs: [], names: new Set(Object.keys(sent)), basis: null };
  }
  const inputs = entries.flatMap(([name, members]) => {
    const pointer = `/inputs/${escapePointer(quoted(name))}`;
    if (!isInputName(name)) broken.add(pointer, 'invalid_format', NAME_FORM);
    else if (isMembers(members)) {
      return [{ name, members, pointer, codePointer: `${pointer}/code` }];
    } else broken.add(pointer, 'wrong_type', 'Must be an object');
    return [];
  });
  const only = entries.length === 1 ? (inputs[0]?.name ?? null) : null;
  const names = new Set(inputs.map(({ name }) => name));
  return { formula: formula ?? only, inputs, names, basis: null };
}

function plannedPeriod(sent: SentInput, broken: Violations): PlannedPeriod | null {
  const text = sent.members['period'];
  const pointer = `${sent.pointer}/period`;
  if (typeof text === 'string') {
    const period = broken.parsed(pointer, () => parsePeriod(text));
    return period && { text, period };
  }
  broken.add(pointer, 'invalid_format', 'Must have a period, such as 2026-06, M-1 or S');
  return null;
}

const textIn = (members: Members, name: string): string | null =>
  (members[name] as string | undefined) ?? null;

function inputRounding(members: Members): InputRounding | null {
  const sent = members['rounding'] as Members | undefined;
  if (sent === undefined) return null;
  const [session, average] = ['session', 'average'].map((name) => sent[name] as number | undefined);
  const mode = (sent['mode'] as RoundingMode | undefined) ?? 'half-even';
  return { session: session ?? null, average: average ?? null, mode };
}

/** Most days between a missing day and its substitute, unless the request says so. */
const SUBSTITUTE_DAYS = 5;

/** The violations of members of a price input that do not combine. */
function checkCombined(sent: SentInput, input: PriceInput, broken: Violations): void {
  const { side, statistic, method, rounding } = input;
  const add = (member: string, detail: string): void =>
    broken.add(`${sent.pointer}/${member}`, 'unknown_field', detail);
  if (sent.members['method'] !== undefined && (side !== 'mid' || statistic !== 'average')) {
    add('method', 'method applies to the average of the side mid; omit it');
  }
  const substitutes = input.missing === 'previous' || input.missing === 'next';
  if (substitutes && input.period.kind === 'sessions') {
    add('missing', 'A period of sessions counts published ones; use refuse or skip');
  }
  if (!substitutes && sent.members['maxDays'] !== undefined) {
    add('maxDays', 'maxDays applies to missing: previous or next; omit it');
  }
  const isRounded = rounding !== null && rounding.average !== null;
  if (method === 'mid-of-rounded-averages' && !isRounded) {
    add('method', 'This method rounds both averages; add rounding.average');
  }
  if (rounding !== null && rounding.session === null && rounding.average === null) {
    add('rounding', 'rounding needs the decimals of session, of average, or of both');
  }
}

function priceInput(sent: SentInput, broken: Violations): PriceInput | null {
  const { name, members, pointer } = sent;
  if (!broken.check(checkPrice, members, pointer)) return null;
  const planned = plannedPeriod(sent, broken);
  if (planned === null) return null;
  const input: PriceInput = {
    ...{ kind: 'price', name, pointer, ...planned, code: String(members['code']) },
    codePointer: sent.codePointer,
    side: (members['side'] as ValueName | undefined) ?? 'mid',
    statistic: (members['statistic'] as Statistic | undefined) ?? 'average',
    currency: textIn(members, 'currency'),
    unitOfMeasure: textIn(members, 'unitOfMeasure'),
    vat: (members['vat'] as VatPolicy | undefined) ?? 'as-published',
    missing: (members['missing'] as MissingPolicy | undefined) ?? 'refuse',
    maxDays: (members['maxDays'] as number | undefined) ?? SUBSTITUTE_DAYS,
    method: (members['method'] as AverageMethod | undefined) ?? 'mean-of-mids',
    rounding: inputRounding(members),
  };
  checkCombined(sent, input, broken);
  return input;
}

function rateInput(sent: SentInput, broken: Violations): RateInput | null {
  const { name, members, pointer } = sent;
  if (!broken.check(checkRate, members, pointer)) return null;
  const planned = plannedPeriod(sent, broken);
  const rate = String(members['rate']);
  const [quote, base, ...more] = rate.split('/');
  if (quote === undefined || base === undefined || more.length > 0) {
    broken.add(`${pointer}/rate`, 'invalid_format', 'Must be two currencies, such as CNY/USD');
    return null;
  }
  return planned && { kind: 'rate', name, pointer, ...planned, rate, quote, base };
}

const DECIMAL = /^-?\d+(\.\d+)?$/;
const HUNDRED = 100n;

function numberInput(sent: SentInput, broken: Violations): NumberInput | null {
  const { name, members, pointer } = sent;
  if (!broken.check(checkNumber, members, pointer)) return null;
  const text = String(members['value']);
  if (!DECIMAL.test(text)) {
    broken.add(`${pointer}/value`, 'invalid_format', 'Must be a decimal as a text, such as "7.10"');
    return null;
  }
  const { numerator, denominator } = rationalText(text);
  const unit = textIn(members, 'unit')?.trim() ?? null;
  const isPercent = unit === '%';
  const value = reduced({
    numerator,
    denominator: isPercent ? denominator * HUNDRED : denominator,
  });
  const note = textIn(members, 'note');
  return { kind: 'number', name, pointer, value, unit: isPercent ? null : unit, note };
}

function plannedInput(sent: SentInput, broken: Violations): CalculationInput | null {
  const kinds = ['code', 'rate', 'value'].filter((name) => sent.members[name] !== undefined);
  if (kinds.length === 1 || sent.pointer === '') {
    if (kinds[0] === 'rate') return rateInput(sent, broken);
    return kinds[0] === 'value' ? numberInput(sent, broken) : priceInput(sent, broken);
  }
  const detail = 'Must have one of code (a price), rate (an exchange rate) and value (a number)';
  broken.add(sent.pointer, 'invalid_format', detail);
  return null;
}

const MONTHS: Readonly<Record<string, number>> = { month: 1, quarter: 3, year: 12 };
const MONTH = /^\d{4}-\d{2}$/;

/** The first days of months, quarters or years from a month up to another. */
function anchorSeries(members: Members, broken: Violations): number[] {
  const monthOf = (name: string): number | null => {
    const text = String(members[name]);
    const day = broken.parsed(`/anchor/${name}`, () => {
      if (!MONTH.test(text)) throw new PeriodError('Must be a month, written YYYY-MM');
      return realDay(`${text}-01`);
    });
    if (day === null) return null;
    const { year, month } = calendarDay(day);
    return year * 12 + month - 1;
  };
  const [from, to] = [monthOf('from'), monthOf('to')];
  if (from === null || to === null) return [];
  const step = MONTHS[String(members['every'])] ?? 1;
  const first = Math.ceil(from / step) * step;
  const count = Math.floor((to - first) / step) + 1;
  if (count < 1 || count > ANCHORS_MAX) {
    broken.add('/anchor', 'out_of_range', `Must have 1 to ${ANCHORS_MAX} anchors, not ${count}`);
    return [];
  }
  return Array.from({ length: count }, (_, index) => {
    const month = first + index * step;
    return dayNumber(Math.floor(month / 12), (month % 12) + 1, 1);
  });
}

function anchorsOf(sent: unknown, broken: Violations): readonly (number | null)[] {
  if (sent === undefined) return [null];
  if (typeof sent === 'string') {
    return [broken.parsed('/anchor', () => realDay(sent))];
  }
  if (!isMembers(sent)) {
    broken.add('/anchor', 'wrong_type', 'Must be a day, or an object with from, to and every');
    return [null];
  }
  return broken.check(checkAnchors, sent, '/anchor') ? anchorSeries(sent, broken) : [null];
}

/** Relative periods count from an anchor; "today" is never assumed. */
function checkAnchor(plan: CalculationPlan, broken: Violations): void {
  if (plan.anchors[0] !== null || plan.anchors.length !== 1) return;
  const periods: readonly PlannedPeriod[] = [
    ...plan.inputs.filter((each) => each.kind !== 'number'),
    ...(plan.references?.period ? [plan.references.period] : []),
  ];
  const relative = periods.find(({ period }) => isRelative(period));
  if (relative === undefined) return;
  const detail =
    `The period ${relative.text} counts from an anchor; add the day of the invoice, the bill of ` +
    'lading or another event';
  broken.add('/anchor', 'invalid_format', detail);
}

const membersIn = (body: Members, name: string): Members => {
  const members = body[name];
  return isMembers(members) ? members : {};
};

function resultRounding(result: Members, broken: Violations): FixedRounding | null {
  const { decimals, mode } = result as { decimals?: number; mode?: RoundingMode };
  if (decimals !== undefined) return { decimals, mode: mode ?? 'half-even' };
  if (mode !== undefined) {
    broken.add('/result/mode', 'unknown_field', 'mode applies to decimals; add decimals');
  }
  return null;
}

function plannedFormula(sent: SentCalculation, broken: Violations): PlannedFormula | null {
  const { formula: text, names } = sent;
  if (text === null) {
    if (names.size > 1) {
      broken.add('/formula', 'invalid_formula', 'Must have a formula of the inputs');
    }
    return null;
  }
  const node = broken.parsed('/formula', () => parseFormula(text, names));
  if (node === null) return null;
  const used = inputsOf(node);
  for (const { name, pointer } of sent.inputs) {
    if (used.has(name)) continue;
    broken.add(pointer, 'invalid_formula', 'The formula does not name this input; omit it');
  }
  return { text, node };
}

/** The form of a request, by the member that only this form has. */
function formOf(body: Members): keyof typeof CHECKS {
  if (body['inputs'] !== undefined) return 'inputs';
  if (body['average'] !== undefined) return 'average';
  if (body['payables'] !== undefined) return 'payables';
  return body['convertBasis'] === undefined ? 'inputs' : 'convertBasis';
}

/** Null is the default of these options. */
function withoutNulls(body: Members): Members {
  const { options } = body;
  if (!isMembers(options)) return body;
  const isDefault = ([name, value]: readonly [string, unknown]): boolean =>
    value === null && (name === 'revision' || name === 'asOf');
  return {
    ...body,
    options: Object.fromEntries(Object.entries(options).filter((each) => !isDefault(each))),
  };
}

/** Stands for a formula that could not be parsed, in a plan that is thrown away. */
const NOTHING: Formula = { kind: 'input', name: '', from: 0, to: 0 };
