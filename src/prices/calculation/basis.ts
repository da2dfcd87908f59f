import { atomsOf, molarMass, WEIGHTS_SOURCE } from '../../calculation/molar-mass.ts';
import { rationalText, reduced } from '../../conversion/rational.ts';
import { brokenRules, quoted } from '../../errors.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { References } from '../market/references.ts';
import { BASIS_INPUTS, type NumberInput } from './plan.ts';

/*
 * `convertBasis`: price per tonne of a compound × mass of the compound per atom of the metal ÷ mass
 * of the target per atom. The target is lithium carbonate (LCE), or the metal itself.
 */

const LCE = 'LCE';
const CARBONATE = 'Li2CO3';

/**
 * The inputs of the formula of `convertBasis` beside the price.
 * @param basis `LCE` or a metal, as sent
 * @throws Problem `validation_failed` for a product without a known formula, and for a metal that
 *   it does not contain
 */
export function basisInputs(
  basis: string,
  price: SelectedPrice,
  references: References,
): readonly NumberInput[] {
  const isLce = basis.toUpperCase() === LCE;
  const metal = isLce ? 'Li' : basis;
  const formula = formulaOf(price, references);
  const atoms = atomsOf(formula);
  const count = atoms?.get(metal);
  if (atoms === null || count === undefined) {
    const product = formula === '' ? 'no formula' : quoted(formula);
    const detail =
      `The product of ${price.code} has ${product}, which holds no ${quoted(metal)}; give an ` +
      'agreed factor as a number input instead';
    throw refused('/convertBasis', detail);
  }
  const target = isLce ? CARBONATE : metal;
  const targetAtoms = atomsOf(target);
  const perAtom = targetAtoms?.get(metal) ?? 1;
  const mass = rationalText(targetAtoms === null ? '1' : molarMass(targetAtoms));
  const values = [
    [rationalText(molarMass(atoms)), `g/mol of ${formula}, ${WEIGHTS_SOURCE}`],
    [rationalText(String(count)), `atoms of ${metal} in ${formula}`],
    [
      reduced({ ...mass, denominator: mass.denominator * BigInt(perAtom) }),
      `g/mol of ${target} for each ${metal}, ${WEIGHTS_SOURCE}`,
    ],
  ] as const;
  return BASIS_INPUTS.map((name, index) => {
    const [value, note] = values[index] as (typeof values)[number];
    return { kind: 'number', name, pointer: '', value: reduced(value), unit: null, note };
  });
}

const refused = (pointer: string, detail: string) =>
  brokenRules([{ pointer, code: 'unconvertible', detail }]);

/** The chemical formula of the product of a price; null if it has none. */
function formulaOf(price: SelectedPrice, { products }: References): string {
  const product = products.get(price.product_id) as { readonly chemicalCode?: string } | undefined;
  return product?.chemicalCode ?? '';
}
