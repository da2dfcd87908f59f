/*
 * A figure from its receipt alone, without code of the service: fractions of bigints, and formulas
 * by Dijkstra's shunting yard.
 */

/** A numerator over a denominator that is not 0. */
type Fraction = readonly [bigint, bigint];

/** The fraction of a decimal, a whole number or `numerator/denominator`. */
export function fractionOf(text: string): Fraction {
  const [above = '', below = '1'] = text.split('/');
  const [whole = '', decimals = ''] = above.split('.');
  return [BigInt(whole + decimals), BigInt(below) * 10n ** BigInt(decimals.length)];
}

export const isEqual = (a: Fraction, b: Fraction): boolean => a[0] * b[1] === b[0] * a[1];

const add = (a: Fraction, b: Fraction): Fraction => [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
const multiply = (a: Fraction, b: Fraction): Fraction => [a[0] * b[0], a[1] * b[1]];
const divide = (a: Fraction, b: Fraction): Fraction | null =>
  b[0] === 0n ? null : [a[0] * b[1], a[1] * b[0]];
const isLess = (a: Fraction, b: Fraction): boolean => {
  const difference = add(a, [-b[0], b[1]]);
  return difference[0] < 0n !== difference[1] < 0n && difference[0] !== 0n;
};

const absolute = (value: bigint): bigint => (value < 0n ? -value : value);

/** A fraction rounded to decimals. */
export function rounded([above, below]: Fraction, decimals: number, mode: string): Fraction {
  const scale = 10n ** BigInt(decimals);
  const isNegative = above < 0n !== below < 0n;
  const [amount, by] = [absolute(above) * scale, absolute(below)];
  const [quotient, rest] = [amount / by, amount % by];
  const order = 2n * rest === by ? 0 : 2n * rest > by ? 1 : -1;
  const isUp =
    mode === 'up'
      ? rest > 0n
      : mode === 'down'
        ? false
        : order > 0 || (order === 0 && (mode === 'half-up' || quotient % 2n === 1n));
  const digits = quotient + (isUp ? 1n : 0n);
  return [isNegative ? -digits : digits, scale];
}

/** Six significant digits, never fewer than two decimals. */
export function roundedByRule(value: Fraction): Fraction {
  if (value[0] === 0n) return [0n, 1n];
  const amount: Fraction = [absolute(value[0]), absolute(value[1])];
  let decimals = 2;
  while (isLess(amount, [10n ** 5n, 10n ** BigInt(decimals)])) decimals += 1;
  return rounded(value, decimals, 'half-even');
}

interface Session {
  readonly published: string | null;
  readonly low?: string | null;
  readonly high?: string | null;
  readonly fx: { readonly from: string; readonly to: string } | null;
  /** In percent. */
  readonly vat: string | null;
}

export interface Receipt {
  readonly code?: string;
  readonly side?: string;
  readonly period?: string;
  readonly rate?: string;
  readonly statistic?: string;
  readonly method?: string | null;
  readonly rounding?: { session: number | null; average: number | null; mode: string } | null;
  readonly unit: string;
  readonly unitFactor?: { readonly multiply: string; readonly divide: string } | null;
  readonly sessions?: readonly Session[];
  readonly exact: string | null;
}

/** A published number × unit factor × rates / (1 + VAT), rounded if the input says so. */
function sessionValue(receipt: Receipt, { fx, vat }: Session, published: string | null): Fraction {
  if (published === null) throw new Error('a session has no number');
  const { unitFactor, rounding } = receipt;
  let value = fractionOf(published);
  if (unitFactor) {
    value = multiply(value, fractionOf(unitFactor.multiply));
    value = divide(value, fractionOf(unitFactor.divide)) ?? value;
  }
  if (fx) value = divide(multiply(value, fractionOf(fx.to)), fractionOf(fx.from)) ?? value;
  if (vat !== null) {
    const percent = add([100n, 1n], fractionOf(vat));
    value = divide(multiply(value, [100n, 1n]), percent) ?? value;
  }
  const decimals = rounding?.session ?? null;
  return decimals === null ? value : rounded(value, decimals, rounding?.mode ?? '');
}

function statistic(name: string, values: readonly Fraction[]): Fraction {
  const [first] = values;
  const last = values.at(-1);
  if (first === undefined || last === undefined) throw new Error('an input has no session');
  if (name === 'first') return first;
  if (name === 'last') return last;
  if (name === 'min') return values.reduce((a, b) => (isLess(b, a) ? b : a));
  if (name === 'max') return values.reduce((a, b) => (isLess(a, b) ? b : a));
  const sum = values.reduce(add);
  return [sum[0], sum[1] * BigInt(values.length)];
}

/** The value of an input, from its sessions. */
export function inputValue(receipt: Receipt): Fraction {
  const { sessions, rounding, method } = receipt;
  if (sessions === undefined) return fractionOf(receipt.exact ?? '');
  const one: Fraction = [1n, 1n];
  if (receipt.rate !== undefined) {
    const values = sessions.map(({ fx }) =>
      fx === null ? one : (divide(fractionOf(fx.to), fractionOf(fx.from)) ?? one),
    );
    return statistic('average', values);
  }
  const decimals = rounding?.average ?? null;
  const ofSide = (side: 'published' | 'low' | 'high'): Fraction => {
    const values = sessions.map((each) => sessionValue(receipt, each, each[side] ?? null));
    const value = statistic(receipt.statistic ?? '', values);
    return decimals === null ? value : rounded(value, decimals, rounding?.mode ?? '');
  };
  const sides = method === 'mid-of-rounded-averages' ? (['low', 'high'] as const) : null;
  const value = sides === null ? ofSide('published') : statistic('average', sides.map(ofSide));
  const isPayable = receipt.unit === '1';
  return isPayable ? [value[0], value[1] * 100n] : value;
}

type Value = Fraction | boolean | string | null;

const PRECEDENCE: Readonly<Record<string, number>> = {
  '<': 1,
  '+': 2,
  '-': 2,
  '*': 3,
  '/': 3,
  neg: 4,
};

function applied(operator: string, values: Value[]): Value {
  const right = values.pop() as Fraction | null;
  if (operator === 'neg') return right && [-right[0], right[1]];
  const left = values.pop() as Fraction | null;
  if (left === null || right === null) return null;
  if (operator === '<') return isLess(left, right);
  if (operator === '+') return add(left, right);
  if (operator === '-') return add(left, [-right[0], right[1]]);
  return operator === '*' ? multiply(left, right) : divide(left, right);
}

function called(name: string, args: readonly Value[]): Value {
  const [first, second, third] = args as [Fraction, Fraction, Value];
  if (name === 'if') return (args[0] as unknown as boolean) ? (args[1] ?? null) : (third ?? null);
  if (args.some((each) => each === null)) return null;
  if (name === 'abs') return [absolute(first[0]), absolute(first[1])];
  if (name === 'round') {
    const mode = typeof third === 'string' ? third.replace('_', '-') : 'half-even';
    return rounded(first, Number(second[0] / second[1]), mode);
  }
  const isGreatest = name === 'max';
  return (args as Fraction[]).reduce((a, b) => (isLess(a, b) === isGreatest ? b : a));
}

/** The value of a formula; of comparisons it knows `<` only, and no `step`. */
export function formulaValue(text: string, inputs: ReadonlyMap<string, Fraction>): Value {
  const tokens = text.match(/\d+(?:\.\d+)?|[A-Za-z_]\w*|[-+*/<(),]/g) ?? [];
  const values: Value[] = [];
  const operators: string[] = [];
  const counts: number[] = [];
  const apply = (until: (operator: string) => boolean): void => {
    for (;;) {
      const operator = operators.at(-1);
      if (operator === undefined || operator === '(' || !until(operator)) return;
      operators.pop();
      values.push(applied(operator, values));
    }
  };
  let isOperand = true;
  for (const [at, token] of tokens.entries()) {
    if (token === '(') {
      operators.push('(');
      counts.push(1);
      isOperand = true;
    } else if (token === ',') {
      apply(() => true);
      counts[counts.length - 1] = (counts.at(-1) ?? 0) + 1;
      isOperand = true;
    } else if (token === ')') {
      apply(() => true);
      operators.pop();
      const count = counts.pop() ?? 1;
      const name = operators.at(-1);
      if (name !== undefined && /^[a-z]{2,}$/.test(name) && name !== 'neg') {
        operators.pop();
        values.push(called(name, values.splice(values.length - count)));
      }
      isOperand = false;
    } else if (/^[-+*/<]$/.test(token)) {
      if (isOperand) operators.push('neg');
      else {
        const precedence = PRECEDENCE[token] ?? 0;
        apply((operator) => (PRECEDENCE[operator] ?? 0) >= precedence);
        operators.push(token);
      }
      isOperand = true;
    } else if (tokens[at + 1] === '(') operators.push(token);
    else {
      const known = inputs.get(token);
      values.push(/^\d/.test(token) ? fractionOf(token) : (known ?? token));
      isOperand = false;
    }
  }
  apply(() => true);
  return values[0] ?? null;
}

interface Result {
  readonly value: string | null;
  readonly exact: string | null;
  readonly formula: string;
  readonly rounding: string;
  readonly inputs: Readonly<Record<string, Receipt>>;
}

/** The difference between a result and the recomputation from its receipt; null for none. */
export function differenceOf(result: Result): string | null {
  const inputs = new Map<string, Fraction>();
  for (const [name, receipt] of Object.entries(result.inputs)) {
    const value = inputValue(receipt);
    if (!isEqual(value, fractionOf(receipt.exact ?? ''))) return `${name} is ${value.join('/')}`;
    inputs.set(name, value);
  }
  const exact = formulaValue(result.formula, inputs) as Fraction;
  if (!isEqual(exact, fractionOf(result.exact ?? ''))) return `the formula is ${exact.join('/')}`;
  const [, mode = '', decimals = ''] = /^([a-z-]+), (\d+) decimals$/.exec(result.rounding) ?? [];
  const value = mode === '' ? roundedByRule(exact) : rounded(exact, Number(decimals), mode);
  return isEqual(value, fractionOf(result.value ?? '')) ? null : `the value is ${value.join('/')}`;
}
