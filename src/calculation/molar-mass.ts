/**
 * Abridged standard atomic weights of 2021 (IUPAC, Pure and Applied Chemistry 94, 2022), of the
 * elements of compounds that are traded.
 */
const ATOMIC_WEIGHTS: Readonly<Record<string, string>> = {
  H: '1.0080',
  Li: '6.94',
  B: '10.81',
  C: '12.011',
  N: '14.007',
  O: '15.999',
  F: '18.998',
  Na: '22.990',
  Mg: '24.305',
  Al: '26.982',
  Si: '28.085',
  P: '30.974',
  S: '32.06',
  Cl: '35.45',
  K: '39.098',
  Ca: '40.078',
  Ti: '47.867',
  V: '50.942',
  Cr: '51.996',
  Mn: '54.938',
  Fe: '55.845',
  Co: '58.933',
  Ni: '58.693',
  Cu: '63.546',
  Zn: '65.38',
  Y: '88.906',
  Zr: '91.224',
  La: '138.91',
  Ce: '140.12',
  Pr: '140.91',
  Nd: '144.24',
  Sm: '150.36',
  Eu: '151.96',
  Gd: '157.25',
  Tb: '158.93',
  Dy: '162.50',
  Ho: '164.93',
  Er: '167.26',
  Tm: '168.93',
  Yb: '173.05',
  Lu: '174.97',
};

/** The number of atoms of each element. */
type Atoms = ReadonlyMap<string, number>;

const PART = /(?:([A-Z][a-z]?)|(\()|\))(\d*)/y;

/** The atoms of one part of a formula, such as `Co(OH)2`; null if it cannot be read. */
function atomsOfPart(text: string): Map<string, number> | null {
  const groups = [new Map<string, number>()];
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const match = PART.exec(text);
    if (match === null) return null;
    const [, element, open, digits = ''] = match;
    const count = digits === '' ? 1 : Number(digits);
    if (open !== undefined) {
      if (digits !== '') return null;
      groups.push(new Map());
      continue;
    }
    const closed = element === undefined ? groups.pop() : new Map([[element, 1]]);
    const group = groups.at(-1);
    if (group === undefined || closed === undefined) return null;
    for (const [name, atoms] of closed) group.set(name, (group.get(name) ?? 0) + atoms * count);
  }
  return groups.length === 1 ? (groups[0] ?? null) : null;
}

/**
 * The atoms of a chemical formula such as `LiOH·H2O` or `CoSO4·7H2O`. Null for a text that is no
 * formula, and for an element without a weight here.
 */
export function atomsOf(formula: string): Atoms | null {
  const atoms = new Map<string, number>();
  for (const text of formula.split('·')) {
    const [, digits = '', part = ''] = /^(\d*)(.+)$/.exec(text) ?? [];
    const found = atomsOfPart(part);
    if (found === null || found.size === 0) return null;
    for (const [element, count] of found) {
      if (ATOMIC_WEIGHTS[element] === undefined) return null;
      atoms.set(element, (atoms.get(element) ?? 0) + count * Number(digits || 1));
    }
  }
  return atoms;
}

/** Decimals of all atomic weights at most. */
const DECIMALS = 4;

/** A molar mass in g/mol, as exact decimal text: the sum of the atomic weights. */
export function molarMass(atoms: Atoms): string {
  let scaled = 0n;
  for (const [element, count] of atoms) {
    const [whole = '', fraction = ''] = (ATOMIC_WEIGHTS[element] ?? '0').split('.');
    scaled += BigInt(whole + fraction.padEnd(DECIMALS, '0')) * BigInt(count);
  }
  const digits = String(scaled).padStart(DECIMALS + 1, '0');
  const text = `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`;
  return text.replace(/\.?0+$/, '');
}

/** The source of the atomic weights, for receipts. */
export const WEIGHTS_SOURCE = 'IUPAC 2021 abridged standard atomic weights';
