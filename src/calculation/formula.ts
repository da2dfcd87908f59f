import { type Rational, rationalText, reduced } from '../conversion/rational.ts';
import { StacklessError } from '../std/base-errors.ts';
import type { RoundingMode } from './fraction.ts';

/*
 * Formulas, by recursive descent:
 *
 *   sum      = product { ("+" | "-") product }
 *   product  = sign { ("*" | "/") sign }
 *   sign     = "-" sign | atom
 *   atom     = number | input | "(" sum ")" | call
 *   call     = ("min" | "max") "(" sum { "," sum } ")" | "abs" "(" sum ")"
 *            | "round" "(" sum "," digits [ "," mode ] ")"
 *            | "step" "(" sum "," "[" pair { "," pair } "]" ")"
 *            | "if" "(" sum compare sum "," sum "," sum ")"
 *   pair     = "[" [ "-" ] number "," [ "-" ] number "]"
 */

/** Most characters of a number. */
const NUMBER_MAX = 40;
/** Most parentheses, calls and signs within each other. */
const DEPTH_MAX = 32;
/** Most decimals that `round` rounds to. */
const DECIMALS_MAX = 20;

/** The rules that a formula can break. */
type FormulaErrorCode = 'invalid_formula' | 'unit_mismatch' | 'division_by_zero' | 'out_of_range';

/** A formula that cannot be parsed or evaluated. The message says what would be right. */
export class FormulaError extends StacklessError {
  override readonly name = 'FormulaError';
  readonly code: FormulaErrorCode;

  /** @param at index of the first wrong character */
  constructor(code: FormulaErrorCode, at: number, message: string) {
    super(`Character ${at + 1}: ${message}`);
    this.code = code;
  }
}

/** The characters of a part of the formula, from one index up to another. */
interface Place {
  readonly from: number;
  readonly to: number;
}

export type Operator = '+' | '-' | '*' | '/';
const COMPARISONS = ['<=', '>=', '<', '>', '='] as const;
export type Comparison = (typeof COMPARISONS)[number];

/** A step of `step`: from a limit on, the value. */
interface Step {
  readonly limit: Rational;
  readonly value: Rational;
}

export type Formula = Place &
  (
    | { readonly kind: 'number'; readonly value: Rational }
    | { readonly kind: 'input'; readonly name: string }
    | { readonly kind: 'negative'; readonly of: Formula }
    | {
        readonly kind: 'operation';
        readonly operator: Operator;
        readonly left: Formula;
        readonly right: Formula;
      }
    | { readonly kind: 'least' | 'greatest'; readonly of: readonly Formula[] }
    | { readonly kind: 'amount'; readonly of: Formula }
    | {
        readonly kind: 'round';
        readonly of: Formula;
        readonly decimals: number;
        readonly mode: RoundingMode;
      }
    | { readonly kind: 'step'; readonly of: Formula; readonly steps: readonly Step[] }
    | {
        readonly kind: 'choice';
        readonly comparison: Comparison;
        readonly left: Formula;
        readonly right: Formula;
        readonly yes: Formula;
        readonly no: Formula;
      }
  );

/** The rounding modes as formulas name them. */
const MODE_NAMES: Readonly<Record<string, RoundingMode>> = {
  half_even: 'half-even',
  half_up: 'half-up',
  down: 'down',
  up: 'up',
};

const FUNCTIONS = ['min', 'max', 'abs', 'round', 'step', 'if'];

/** A name of an input: a letter, then letters, digits and `_`. */
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,31}$/;

/** True if an input may have a name: the functions of formulas may not. */
export const isInputName = (name: string): boolean => NAME.test(name) && !FUNCTIONS.includes(name);

interface Token extends Place {
  readonly kind: 'number' | 'name' | 'sign' | 'end';
  readonly text: string;
}

const TOKEN = /\s*(?:(\d[\d.]*)|([A-Za-z_]\w*)|(<=|>=|[-+*/(),[\]<>=])|(\S))/uy;
const NUMBER = /^\d+(?:\.\d+)?$/;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const [all, number, name, sign, other] = match;
    const to = match.index + all.length;
    const found = number ?? name ?? sign ?? other ?? '';
    const from = to - found.length;
    if (other !== undefined || (number !== undefined && !NUMBER.test(number))) {
      const detail = other === undefined ? 'write a number like 0.97' : NO_SIGN;
      throw new FormulaError('invalid_formula', from, detail);
    }
    if (number !== undefined && number.length > NUMBER_MAX) {
      const detail = `a number has at most ${NUMBER_MAX} characters`;
      throw new FormulaError('invalid_formula', from, detail);
    }
    const kind = number !== undefined ? 'number' : name !== undefined ? 'name' : 'sign';
    tokens.push({ kind, text: found, from, to });
  }
  return tokens;
}

const NO_SIGN = 'this sign has no meaning here; use + - * / ( ) and the names of inputs';

/** Parses one formula. */
class Parser {
  readonly #tokens: readonly Token[];
  readonly #end: Token;
  readonly #inputs: ReadonlySet<string>;
  #at = 0;
  #depth = 0;

  constructor(text: string, inputs: ReadonlySet<string>) {
    this.#tokens = tokensOf(text);
    this.#end = { kind: 'end', text: 'the end', from: text.length, to: text.length };
    this.#inputs = inputs;
  }

  parse(): Formula {
    const formula = this.#sum();
    if (this.#next.kind !== 'end') throw this.#expected('an operator');
    return formula;
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? this.#end;
  }

  #expected(what: string): FormulaError {
    const { from, text } = this.#next;
    return new FormulaError('invalid_formula', from, `expected ${what}, not ${text.slice(0, 32)}`);
  }

  #takes(...signs: readonly string[]): Token | null {
    const token = this.#next;
    if (token.kind !== 'sign' || !signs.includes(token.text)) return null;
    this.#at += 1;
    return token;
  }

  #take(...signs: readonly string[]): Token {
    const token = this.#takes(...signs);
    if (token === null) throw this.#expected(signs.join(' or '));
    return token;
  }

  #within<T>(from: number, parse: () => T): T {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) {
      const detail = `parentheses, calls and signs go at most ${DEPTH_MAX} deep`;
      throw new FormulaError('invalid_formula', from, detail);
    }
    const result = parse();
    this.#depth -= 1;
    return result;
  }

  #chain(operand: () => Formula, ...operators: readonly Operator[]): Formula {
    let left = operand();
    for (;;) {
      const token = this.#takes(...operators);
      if (token === null) return left;
      const right = operand();
      const operator = token.text as Operator;
      left = { kind: 'operation', operator, left, right, from: left.from, to: right.to };
    }
  }

  #sum(): Formula {
    return this.#chain(() => this.#product(), '+', '-');
  }

  #product(): Formula {
    return this.#chain(() => this.#sign(), '*', '/');
  }

  #sign(): Formula {
    const minus = this.#takes('-');
    if (minus === null) return this.#atom();
    const of = this.#within(minus.from, () => this.#sign());
    return { kind: 'negative', of, from: minus.from, to: of.to };
  }

  #atom(): Formula {
    const token = this.#next;
    const { from, to, text } = token;
    if (token.kind === 'number') {
      this.#at += 1;
      return { kind: 'number', value: reduced(rationalText(text)), from, to };
    }
    if (token.kind === 'name') {
      this.#at += 1;
      if (FUNCTIONS.includes(text)) return this.#within(from, () => this.#call(text, from));
      return this.#input(token);
    }
    if (this.#takes('(') === null) throw this.#expected('a number, an input or (');
    const inner = this.#within(from, () => this.#sum());
    return { ...inner, from, to: this.#take(')').to };
  }

  #input({ text, from, to }: Token): Formula {
    if (this.#inputs.has(text)) return { kind: 'input', name: text, from, to };
    const known = [...this.#inputs].join(', ');
    const detail = `there is no input ${text.slice(0, 32)}; the inputs are ${known}`;
    throw new FormulaError('invalid_formula', from, detail);
  }

  /** A call of a function, after its name. */
  #call(name: string, from: number): Formula {
    this.#take('(');
    if (name === 'if') return this.#choice(from);
    const of = this.#sum();
    if (name === 'abs') return { kind: 'amount', of, from, to: this.#take(')').to };
    if (name === 'round') return this.#round(of, from);
    if (name === 'step') return this.#steps(of, from);
    const all = [of];
    while (this.#takes(',') !== null) all.push(this.#sum());
    const kind = name === 'min' ? 'least' : 'greatest';
    return { kind, of: all, from, to: this.#take(')').to };
  }

  #choice(from: number): Formula {
    const left = this.#sum();
    const comparison = this.#take(...COMPARISONS).text as Comparison;
    const right = this.#sum();
    this.#take(',');
    const yes = this.#sum();
    this.#take(',');
    const no = this.#sum();
    return { kind: 'choice', comparison, left, right, yes, no, from, to: this.#take(')').to };
  }

  #round(of: Formula, from: number): Formula {
    this.#take(',');
    const { kind, text } = this.#next;
    if (kind !== 'number' || !/^\d{1,2}$/.test(text) || Number(text) > DECIMALS_MAX) {
      throw this.#expected(`a number of decimals from 0 to ${DECIMALS_MAX}`);
    }
    this.#at += 1;
    const mode = this.#takes(',') === null ? 'half-even' : this.#mode();
    return { kind: 'round', of, decimals: Number(text), mode, from, to: this.#take(')').to };
  }

  #mode(): RoundingMode {
    const { kind, text } = this.#next;
    const mode = MODE_NAMES[text];
    if (kind !== 'name' || mode === undefined) {
      throw this.#expected(Object.keys(MODE_NAMES).join(', '));
    }
    this.#at += 1;
    return mode;
  }

  #steps(of: Formula, from: number): Formula {
    this.#take(',');
    this.#take('[');
    const steps: Step[] = [];
    do {
      const { from: at } = this.#take('[');
      const limit = this.#literal();
      this.#take(',');
      steps.push({ limit, value: this.#literal() });
      this.#take(']');
      const before = steps.at(-2)?.limit;
      if (before && before.numerator * limit.denominator >= limit.numerator * before.denominator) {
        throw new FormulaError('invalid_formula', at, 'the limits of step must increase');
      }
    } while (this.#takes(',') !== null);
    this.#take(']');
    return { kind: 'step', of, steps, from, to: this.#take(')').to };
  }

  /** A number with or without a minus. */
  #literal(): Rational {
    const isNegative = this.#takes('-') !== null;
    const { kind, text } = this.#next;
    if (kind !== 'number') throw this.#expected('a number');
    this.#at += 1;
    return reduced(rationalText(isNegative ? `-${text}` : text));
  }
}

/** The inputs that a formula names. */
export function inputsOf(formula: Formula): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: Formula): void => {
    if (node.kind === 'input') names.add(node.name);
    if ('left' in node) for (const each of [node.left, node.right]) visit(each);
    if ('yes' in node) for (const each of [node.yes, node.no]) visit(each);
    if ('of' in node) for (const each of [node.of].flat()) visit(each as Formula);
  };
  visit(formula);
  return names;
}

/**
 * Parses a formula.
 * @param text of a length that the caller has limited
 * @param inputs the names that it may use
 * @throws FormulaError `invalid_formula`
 */
export const parseFormula = (text: string, inputs: ReadonlySet<string>): Formula =>
  new Parser(text, inputs).parse();
