import { matchKey } from '../catalog/match-key.ts';
import { decimalOf, decimalText } from '../std/decimal.ts';
import { nearestDouble, over, type Rational, rationalText, reduced } from './rational.ts';

/** A unit of measure, for conversion. */
export interface Unit {
  readonly id: number;
  readonly uuid: string;
  readonly name: string;
  readonly symbol: string;
  /** Units convert only within one dimension. */
  readonly dimension: string;
  /** Exact factor to the base unit of the dimension (kg, kWh …), as decimal text. */
  readonly factor: string;
}

/**
 * The factor from a price per unit A to a price per unit B: kg(B) / kg(A). The texts are the stored
 * factors of both units, for the receipt.
 */
export interface UnitFactor {
  readonly multiply: string;
  readonly divide: string;
  readonly exact: Rational;
  /** The double nearest to `exact`. */
  readonly nearest: number;
}

const written = (factor: string): string => decimalText(decimalOf(factor));

/** The dimension of percentages, which never convert. */
const RATIO = 'ratio';

/**
 * The factor from prices per `from` to prices per `to`. Null if their dimensions differ, such as a
 * dry and a wet tonne, or a tonne and a ton unit.
 */
export function unitFactor(from: Unit, to: Unit): UnitFactor | null {
  if (from.dimension !== to.dimension) return null;
  if (from.dimension === RATIO && from.id !== to.id) return null;
  const exact = reduced(over(rationalText(to.factor), rationalText(from.factor)));
  return {
    multiply: written(to.factor),
    divide: written(from.factor),
    exact,
    nearest: nearestDouble(exact),
  };
}

/** The factor between a unit and itself. */
export const SAME_UNIT: UnitFactor = {
  multiply: '1',
  divide: '1',
  exact: { numerator: 1n, denominator: 1n },
  nearest: 1,
};

/**
 * The unit that a text names by id, name or symbol, compared by match key in this order. If several
 * symbols have one key, only an equal symbol matches. Undefined if no unit matches.
 */
export function unitNamed(units: Iterable<Unit>, text: string): Unit | undefined {
  const key = matchKey(text);
  const all = [...units];
  const named = all.find((each) => each.uuid === key || matchKey(each.name) === key);
  if (named) return named;
  const symbols = all.filter((each) => matchKey(each.symbol) === key);
  return symbols.length === 1 ? symbols[0] : symbols.find((each) => each.symbol === text.trim());
}
