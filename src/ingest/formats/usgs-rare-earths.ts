import { AVERAGE, series, type UsgsSeries } from './usgs-price.ts';

const CHINESE = {
  priceCategory: 'Spot',
  incoterm: 'FOB',
  country: 'China',
  region: 'North-East Asia',
};
/** Words that describe the same prices. */
const FOB = ['fob', 'cn', 'china'];

const YEAR_END = { priceCategory: 'Spot', country: 'United States', region: 'North America' };

interface Chinese {
  readonly title: string;
  readonly product: string;
  readonly purity: string;
  readonly newProduct?: readonly [alias: string, chemicalCode: string];
  readonly commodity?: string;
}

const codeOf = (number: number): string => `CP-RE-91${String(number).padStart(2, '0')}`;

/**
 * Words of price columns of scandium that are not loaded, as nothing continues them from release to
 * release.
 */
export const NOT_LOADED: ReadonlySet<string> = new Set([
  ...['acetate', 'chloride', 'fluoride', 'iodide'],
  ...['dendritic', 'scal', 'alloy'],
]);

/** A price FOB China, in dollars per kilogram. */
function chinese(number: number, word: string | null, described: Chinese): UsgsSeries {
  const { product, purity, title, newProduct, commodity = 'Rare Earths' } = described;
  return series(
    codeOf(number),
    commodity,
    word === null ? null : { needed: [word], allowed: FOB },
    {
      title,
      unit: 'kg',
      name: `${product}, FOB China, annual average`,
      shortName: `${product} FOB CN avg`,
      product,
      ...(newProduct ? { newProduct } : {}),
      basis: `FOB China; ${AVERAGE}`,
      terms: { ...CHINESE, purity },
    },
  );
}

/** An oxide whose name in the tables is its product and purity. */
const oxide = (
  number: number,
  word: string | null,
  product: string,
  purity: string,
  newProduct?: readonly [alias: string, chemicalCode: string],
): UsgsSeries => {
  const title = `${product} ${purity}`;
  const added = newProduct ? { newProduct } : {};
  return chinese(number, word, { title, product, purity, ...added });
};

/** A price at the end of the year, in dollars per gram, for a small lot. */
const scandium = (
  number: number,
  [word, group]: readonly [word: string, group: string],
  lot: string,
  described: { title: string; product: string; newProduct: [string, string]; purity?: string },
): UsgsSeries => {
  const { title, product, newProduct, purity } = described;
  return series(
    codeOf(number),
    'Scandium',
    { needed: [word], allowed: [group] },
    {
      title,
      unit: 'g',
      name: `${product}, lot of ${lot}, United States, end of year`,
      shortName: `${product} US year end`,
      product,
      newProduct,
      basis: `lot of ${lot}; price at the end of the year`,
      terms: { ...YEAR_END, ...(purity ? { purity } : {}) },
    },
  );
};

/** Rare earths, scandium and yttrium. */
export const RARE_EARTHS: readonly UsgsSeries[] = [
  oxide(1, 'la2o3', 'Lanthanum oxide', '99.5% min'),
  oxide(2, 'ceo2', 'Cerium oxide', '99.5% min'),
  chinese(3, 'mischmetal', {
    title: 'Mischmetal 65% Ce 35% La',
    product: 'Mischmetal',
    purity: '65% Ce, 35% La',
    newProduct: ['Mischmetal', 'CeLa'],
  }),
  oxide(4, null, 'Praseodymium oxide', '99.99% min'),
  oxide(5, 'nd2o3', 'Neodymium oxide', '99.5% min'),
  chinese(6, null, {
    title: 'Neodymium-praseodymium oxide 99% min',
    product: 'Neodymium-praseodymium oxide',
    purity: '99.0% min',
  }),
  oxide(7, null, 'Samarium oxide', '99.5% min', ['Sm oxide', 'Sm2O3']),
  oxide(8, 'eu2o3', 'Europium oxide', '99.99% min', ['Eu oxide', 'Eu2O3']),
  oxide(9, null, 'Gadolinium oxide', '99.99% min'),
  oxide(10, 'tbo2', 'Terbium oxide', '99.99% min'),
  oxide(11, 'dy2o3', 'Dysprosium oxide', '99.5% min'),
  scandium(12, ['oxide', 'cmpds'], '5 kg', {
    title: 'Scandium oxide 99.99%, 5-kg lot, year-end',
    product: 'Scandium oxide',
    newProduct: ['Sc oxide', 'Sc2O3'],
    purity: '99.99% min',
  }),
  scandium(13, ['ingot', 'mtl'], '5 g', {
    title: 'Scandium metal ingot, 5-g lot, year-end',
    product: 'Scandium metal',
    newProduct: ['Sc metal', 'Sc'],
  }),
  chinese(14, 'y2o3', {
    title: 'Yttrium oxide 99.999% min, FOB China',
    product: 'Yttrium oxide',
    purity: '99.999% min',
    commodity: 'Yttrium',
  }),
  chinese(15, 'metal', {
    title: 'Yttrium metal 99.9% min, FOB China',
    product: 'Yttrium metal',
    newProduct: ['Y metal', 'Y'],
    purity: '99.9% min',
    commodity: 'Yttrium',
  }),
];
