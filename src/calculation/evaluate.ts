import { compare, type Rational, ZERO } from '../conversion/rational.ts';
import { type Comparison, type Formula, FormulaError, type Operator } from './formula.ts';
import {
  extreme,
  fractionBits,
  inverse,
  negated,
  product,
  roundedFraction,
  sum,
  TooLongError,
} from './fraction.ts';
import { combined, isSameUnit, ONE, UnitError, type UnitProduct, unitText } from './unit.ts';

/** The units of the parts of a formula. Every part has one, whatever its value is. */
export type FormulaUnits = ReadonlyMap<Formula, UnitProduct>;

const mismatch = (at: number, detail: string): FormulaError =>
  new FormulaError('unit_mismatch', at, detail);

/** Finds the unit of each part of one formula. */
class Units {
  readonly units = new Map<Formula, UnitProduct>();
  readonly #inputs: ReadonlyMap<string, UnitProduct>;

  constructor(inputs: ReadonlyMap<string, UnitProduct>) {
    this.#inputs = inputs;
  }

  of(node: Formula): UnitProduct {
    const unit = this.#unitOf(node);
    this.units.set(node, unit);
    return unit;
  }

  #unitOf(node: Formula): UnitProduct {
    switch (node.kind) {
      case 'number':
        return ONE;
      case 'input':
        return this.#inputs.get(node.name) ?? ONE;
      case 'negative':
      case 'amount':
      case 'round':
        return this.of(node.of);
      case 'least':
      case 'greatest':
        return this.#same(node.of);
      case 'step':
        this.#plain(node.of);
        return ONE;
      case 'choice':
        this.#same([node.left, node.right]);
        return this.#same([node.yes, node.no]);
      case 'operation':
        return this.#operation(node.operator, node.left, node.right);
    }
  }

  /** The unit that some parts share. */
  #same(nodes: readonly Formula[]): UnitProduct {
    const [first = ONE, ...others] = nodes.map((each) => this.of(each));
    const at = others.findIndex((each) => !isSameUnit(each, first));
    if (at < 0) return first;
    const [one, other] = [unitText(first), unitText(others[at] ?? ONE)];
    throw mismatch(
      nodes[at + 1]?.from ?? 0,
      `this is in ${other}, but the part before it in ${one}; convert an input, or give a number ` +
        'as an input with that unit',
    );
  }

  #plain(node: Formula): void {
    const unit = this.of(node);
    if (isSameUnit(unit, ONE)) return;
    throw mismatch(node.from, `step compares with plain numbers, and this is ${unitText(unit)}`);
  }

  #operation(operator: Operator, left: Formula, right: Formula): UnitProduct {
    if (operator === '+' || operator === '-') return this.#same([left, right]);
    const [a, b] = [this.of(left), this.of(right)];
    try {
      return combined(a, b, operator === '*' ? 1 : -1);
    } catch (error) {
      if (error instanceof UnitError) throw mismatch(left.from, error.message);
      throw error;
    }
  }
}

/**
 * Finds the unit of a formula and of its parts: `+`, `-`, `min`, `max`, `if` and comparisons need
 * equal units, `*` and `/` combine them, and nothing is converted.
 * @throws FormulaError `unit_mismatch`
 */
export function unitsOf(
  formula: Formula,
  inputs: ReadonlyMap<string, UnitProduct>,
): { readonly unit: UnitProduct; readonly units: FormulaUnits } {
  const found = new Units(inputs);
  return { unit: found.of(formula), units: found.units };
}

/** The value of an operation or a call within a formula, in lowest terms. */
export interface EvaluationStep {
  readonly node: Formula;
  readonly value: Rational;
}

const HOLDS: Readonly<Record<Comparison, (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '=': (order) => order === 0,
  '>=': (order) => order >= 0,
  '>': (order) => order > 0,
};

/**
 * Most work of one formula, in squared bits: the greatest common divisor of two numbers of `n` bits
 * takes about n² of it. This much takes about 5 ms.
 */
const WORK_MAX = 2e8;

const tooLong = (at: number): FormulaError =>
  new FormulaError(
    'out_of_range',
    at,
    'the exact number has too many digits; round an input or a part, or shorten its period',
  );

/** Evaluates one formula. */
class Evaluation {
  readonly steps: EvaluationStep[] = [];
  readonly #inputs: ReadonlyMap<string, Rational>;
  #work = 0;

  constructor(inputs: ReadonlyMap<string, Rational>) {
    this.#inputs = inputs;
  }

  of(node: Formula): Rational {
    const value = this.#valueOf(node);
    const isStep = node.kind !== 'number' && node.kind !== 'input';
    if (isStep) this.steps.push({ node, value });
    return value;
  }

  #valueOf(node: Formula): Rational {
    switch (node.kind) {
      case 'number':
        return node.value;
      case 'input':
        return this.#inputs.get(node.name) ?? ZERO;
      case 'negative':
        return negated(this.of(node.of));
      case 'amount': {
        const value = this.of(node.of);
        return value.numerator < 0n ? negated(value) : value;
      }
      case 'round':
        return roundedFraction(this.of(node.of), node);
      case 'least':
      case 'greatest':
        return this.#extreme(node.of, node.kind === 'least' ? 1 : -1);
      case 'step':
        return this.#step(node);
      case 'choice': {
        const order = compare(this.of(node.left), this.of(node.right));
        return this.of(HOLDS[node.comparison](order) ? node.yes : node.no);
      }
      case 'operation':
        return this.#operation(node);
    }
  }

  #extreme(nodes: readonly Formula[], sign: 1 | -1): Rational {
    return extreme(
      nodes.map((each) => this.of(each)),
      sign,
    );
  }

  #step({ of, steps }: Extract<Formula, { kind: 'step' }>): Rational {
    const value = this.of(of);
    const found = steps.findLast(({ limit }) => compare(limit, value) <= 0);
    if (found !== undefined) return found.value;
    throw new FormulaError('out_of_range', of.from, 'this is below the first limit of step');
  }

  #operation({ operator, left, right }: Extract<Formula, { kind: 'operation' }>): Rational {
    const [a, b] = [this.of(left), this.of(right)];
    this.#work += Math.min(fractionBits(a), fractionBits(b)) ** 2;
    if (this.#work > WORK_MAX) throw tooLong(left.from);
    if (operator === '/' && b.numerator === 0n) {
      throw new FormulaError('division_by_zero', right.from, 'this is 0, and divides');
    }
    try {
      if (operator === '+') return sum(a, b);
      if (operator === '-') return sum(a, negated(b));
      return product(a, operator === '*' ? b : inverse(b));
    } catch (error) {
      throw error instanceof TooLongError ? tooLong(left.from) : error;
    }
  }
}

/**
 * Evaluates a formula exactly.
 * @param inputs the value of each input, in lowest terms
 * @returns its value in lowest terms, and the operations and calls in the order of evaluation; of
 *   `if`, only the branch that holds
 * @throws FormulaError `division_by_zero`, or `out_of_range` below the first limit of `step` and
 *   for numbers that are too long
 */
export function evaluated(
  formula: Formula,
  inputs: ReadonlyMap<string, Rational>,
): { readonly value: Rational; readonly steps: readonly EvaluationStep[] } {
  const evaluation = new Evaluation(inputs);
  return { value: evaluation.of(formula), steps: evaluation.steps };
}
