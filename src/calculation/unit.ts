/** A currency by its ISO 4217 code, or a unit of measure by its symbol. */
export interface UnitPart {
  readonly name: string;
  readonly isCurrency: boolean;
}

/** A product of powers of currencies and units, each once, currencies first, then by name. */
export type UnitProduct = readonly (UnitPart & { readonly power: number })[];

/** The unit of a plain number. */
export const ONE: UnitProduct = [];

/** A part that is neither currency nor unit, or too high a power. */
export class UnitError extends Error {
  override readonly name = 'UnitError';
}

/** Most times that a currency or unit is a factor. */
const POWER_MAX = 9;

const before = (a: UnitPart, b: UnitPart): number => {
  if (a.isCurrency !== b.isCurrency) return a.isCurrency ? -1 : 1;
  return a.name < b.name ? -1 : 1;
};

/** The unit of a × b (`sign` 1) or a / b (`sign` -1). @throws UnitError for too high a power */
export function combined(a: UnitProduct, b: UnitProduct, sign: 1 | -1): UnitProduct {
  if (b.length === 0) return a;
  const powers = new Map(a.map((part) => [part.name, part]));
  for (const part of b) {
    const power = (powers.get(part.name)?.power ?? 0) + sign * part.power;
    if (Math.abs(power) > POWER_MAX) {
      throw new UnitError(`the power of ${part.name} exceeds ${POWER_MAX}`);
    }
    powers.set(part.name, { ...part, power });
  }
  return [...powers.values()].filter(({ power }) => power !== 0).sort(before);
}

/** A unit as text: `USD/t`, `USD*mtu/t^2`, `1`. */
export function unitText(unit: UnitProduct): string {
  const written = (name: string, power: number) => (power === 1 ? name : `${name}^${power}`);
  const above = unit.filter(({ power }) => power > 0).map((each) => written(each.name, each.power));
  const below = unit.filter(({ power }) => power < 0);
  return [above.join('*') || '1', ...below.map(({ name, power }) => written(name, -power))].join(
    '/',
  );
}

/** True if two units are equal. */
export const isSameUnit = (a: UnitProduct, b: UnitProduct): boolean => unitText(a) === unitText(b);

const POWER = /^(.*)\^([2-9])$/;

/**
 * Parses a unit of products and quotients: `USD/t`, `lb/t`, `1`.
 * @param partOf finds a currency or a unit
 * @throws UnitError for too high a power; the errors of `partOf`
 */
export function parseUnit(text: string, partOf: (name: string) => UnitPart): UnitProduct {
  let result = ONE;
  let sign: 1 | -1 = 1;
  for (const [index, piece] of text.split(/([*/])/).entries()) {
    const factor = piece.trim();
    if (index % 2 === 1) {
      sign = factor === '/' ? -1 : 1;
      continue;
    }
    if (factor === '1') continue;
    const [, name = factor, power = '1'] = POWER.exec(factor) ?? [];
    const part = partOf(name.trim());
    result = combined(result, [{ ...part, power: Number(power) }], sign);
  }
  return result;
}
