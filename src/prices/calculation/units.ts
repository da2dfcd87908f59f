import {
  ONE,
  parseUnit,
  UnitError,
  type UnitPart,
  type UnitProduct,
} from '../../calculation/unit.ts';
import { unitNamed } from '../../conversion/units.ts';
import { quoted, type Violation } from '../../errors.ts';
import { currencyNamed } from '../answer/conversions.ts';
import type { References } from '../market/references.ts';

/** The unit of a text; `ONE` and a violation if it is no unit. */
export function unitOf(
  text: string,
  pointer: string,
  references: References,
  broken: Violation[],
): UnitProduct {
  try {
    return parseUnit(text, (name) => unitPart(references, name));
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    broken.push({ pointer, code: 'unknown_unit', detail: error.message });
    return ONE;
  }
}

/** The currency or unit that a name in a unit means. @throws UnitError */
function unitPart(references: References, name: string): UnitPart {
  const currency = currencyNamed(references, name);
  if (currency !== undefined && currency.member.iso === name) return { name, isCurrency: true };
  const units = [...references.units.values()].map((each) => each.unit);
  const unit = unitNamed(units, name);
  if (unit !== undefined && unit.dimension !== 'ratio') {
    return { name: unit.symbol, isCurrency: false };
  }
  if (currency !== undefined) return { name: currency.member.iso, isCurrency: true };
  const isPercent = unit !== undefined;
  throw new UnitError(
    isPercent
      ? '% stands alone: write 1 in a product'
      : `There is no currency or unit "${quoted(name)}"; write a product or quotient of ISO 4217 ` +
          'codes and symbols of units, such as USD/t, lb/t or CNY/USD',
  );
}
