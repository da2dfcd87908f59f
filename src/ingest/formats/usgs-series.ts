import { AVERAGE, type DeclaredParts, series, type Terms, type UsgsSeries } from './usgs-price.ts';
import { RARE_EARTHS } from './usgs-rare-earths.ts';

const UNIT_VALUE = `unit value of imports into the United States; ${AVERAGE}`;
const EXCHANGE = { priceCategory: 'Exchange', incoterm: 'In-warehouse', region: 'Global' };
/** Words of a column with cash prices of the London Metal Exchange. */
const LME = ['lme', 'cash'];
const SPOT = ['spot', 'us', 'market'];
const AMERICAN = { country: 'United States', region: 'North America' };
const IMPORTED = { priceCategory: 'Index', region: 'Global' };

/** Alumina and bauxite, valued free alongside ship. */
const imported = (code: string, word: 'Alumina' | 'Bauxite', product: string): UsgsSeries =>
  series(
    code,
    'Bauxite and Alumina',
    { needed: [word.toLowerCase()], misspelt: ['kt'] },
    {
      title: `${word}, import unit value FAS`,
      unit: 'tonne',
      name: `${word}, unit value of imports, United States, annual average`,
      shortName: `${word} imp US avg`,
      product,
      basis: `${UNIT_VALUE}, free alongside ship`,
      terms: { ...IMPORTED, incoterm: 'FAS' },
    },
  );

const copper = (
  number: number,
  parts: DeclaredParts,
  described: Omit<Terms, 'unit' | 'isInCents' | 'product'>,
): UsgsSeries =>
  series(`CP-CU-910${number}`, 'Copper', parts, {
    ...described,
    unit: 'lb',
    isInCents: true,
    product: 'Copper cathode, grade A',
  });

const graphite = (
  number: number,
  word: string,
  kind: string,
  product: string,
  isNew = false,
): UsgsSeries =>
  series(
    `CP-NG-910${number}`,
    'Graphite (Natural)',
    { needed: [word], allowed: ['chip'], misspelt: ['t'] },
    {
      title: `${kind}, import unit value`,
      unit: 'tonne',
      name: `${kind} graphite, unit value of imports, United States, annual average`,
      shortName: `${kind} imp US avg`,
      product,
      ...(isNew ? { newProduct: [kind, 'C'] as const } : {}),
      basis: UNIT_VALUE,
      terms: IMPORTED,
    },
  );

const nickel = (number: 1 | 2, unit: 'tonne' | 'lb', word: string): UsgsSeries =>
  series(
    `CP-NI-910${number}`,
    'Nickel',
    { allowed: LME },
    {
      title: 'Nickel metal, LME cash',
      unit,
      name: `Nickel, exchange cash, annual average, per ${word}`,
      shortName: `Ni exch cash avg ${word}`,
      product: 'Nickel metal, primary',
      basis: `London Metal Exchange, cash; ${AVERAGE}`,
      terms: { ...EXCHANGE, purity: '99.8% Ni min', service: 'None' },
    },
  );

/** The series that are loaded, and the attributes with which their prices are created. */
export const USGS_SERIES: readonly UsgsSeries[] = [
  series(
    'CP-AL-9101',
    'Aluminum',
    { needed: ['ingot'], allowed: SPOT },
    {
      title: 'Aluminium ingot, U.S. market spot',
      unit: 'lb',
      isInCents: true,
      name: 'Aluminium ingot, spot, United States, annual average',
      shortName: 'Al spot US avg',
      product: 'Primary aluminium P1020A',
      basis: `ingot, U.S. market, spot; ${AVERAGE}`,
      terms: { priceCategory: 'Spot', ...AMERICAN },
    },
  ),
  imported('CP-AL-9102', 'Alumina', 'Alumina, smelter grade'),
  imported('CP-AL-9103', 'Bauxite', 'Bauxite'),
  series(
    'CP-CO-9101',
    'Cobalt',
    { needed: ['spot'], allowed: ['us', 'cathode'] },
    {
      title: 'Cobalt metal, cathode, U.S. spot',
      unit: 'lb',
      name: 'Cobalt cathode, spot, United States, annual average',
      shortName: 'Co spot US avg',
      product: 'Cobalt metal, standard grade',
      basis: `cathode, U.S. spot; ${AVERAGE}`,
      terms: { priceCategory: 'Spot', ...AMERICAN },
    },
  ),
  series(
    'CP-CO-9102',
    'Cobalt',
    { needed: ['lme'], allowed: LME },
    {
      title: 'Cobalt metal, LME cash',
      unit: 'lb',
      name: 'Cobalt metal, exchange cash, annual average',
      shortName: 'Co exch cash avg',
      product: 'Cobalt metal, standard grade',
      basis: `London Metal Exchange, cash; ${AVERAGE}`,
      terms: EXCHANGE,
    },
  ),
  copper(
    1,
    { needed: ['us'], allowed: ['producer', 'cathode'] },
    {
      title: 'Copper cathode, U.S. producer',
      name: 'Copper cathode, producer, United States, annual average',
      shortName: 'Cu producer US avg',
      basis: `cathode, U.S. producer; ${AVERAGE}`,
      terms: { priceCategory: 'Spot', ...AMERICAN },
    },
  ),
  copper(
    2,
    { needed: ['comex'], allowed: ['high', 'grade', 'first', 'position'] },
    {
      title: 'Copper, COMEX high grade first position',
      name: 'Copper, exchange, first position, New York, annual average',
      shortName: 'Cu exch NY avg',
      basis: `COMEX, high grade, first position; ${AVERAGE}`,
      terms: { ...EXCHANGE, ...AMERICAN },
    },
  ),
  copper(
    3,
    { needed: ['lme'], allowed: LME },
    {
      title: 'Copper grade A, LME cash',
      name: 'Copper grade A, exchange cash, annual average',
      shortName: 'Cu exch cash avg',
      basis: `London Metal Exchange, grade A, cash; ${AVERAGE}`,
      terms: EXCHANGE,
    },
  ),
  series(
    'CP-LI-9101',
    'Lithium',
    {},
    {
      title: 'Lithium carbonate battery grade, contract, annual average',
      unit: 'tonne',
      name: 'Lithium carbonate, battery grade, contract, United States, annual average',
      shortName: 'LC BG US avg',
      product: 'Lithium carbonate, battery grade',
      basis: `battery-grade lithium carbonate, contract, in nominal dollars; ${AVERAGE}`,
      // From 2026 on the USGS takes another source and gives it in dollars without inflation.
      lastRelease: 2025,
      terms: { priceCategory: 'Contract', grade: 'Battery', ...AMERICAN },
    },
  ),
  series(
    'CP-MN-9101',
    'Manganese',
    { needed: ['cn', 'cif'], misspelt: ['dt'] },
    {
      title: 'Manganese ore 44% Mn, CIF China',
      // The name of the column says tonne; what it holds is dollars for a metric ton unit of Mn.
      unit: 'mtu',
      name: 'Manganese ore 44% Mn, CIF China, annual average',
      shortName: 'Ore44 CIF CN avg',
      product: 'Manganese ore 44%',
      basis: `ore of 44% Mn, CIF China, for a metric ton unit of Mn; ${AVERAGE}`,
      terms: {
        priceCategory: 'Spot',
        purity: '44% Mn',
        incoterm: 'CIF',
        country: 'China',
        region: 'North-East Asia',
      },
    },
  ),
  graphite(1, 'flake', 'Flake', 'Flake graphite', true),
  graphite(2, 'lump', 'Lump and chip', 'Vein graphite'),
  graphite(3, 'amorphous', 'Amorphous', 'Amorphous graphite'),
  nickel(1, 'tonne', 'tonne'),
  nickel(2, 'lb', 'pound'),
  ...RARE_EARTHS,
];
