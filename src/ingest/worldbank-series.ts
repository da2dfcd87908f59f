import type { Attributes } from './records.ts';

/** A column of the workbook that becomes a price. */
export interface WorldBankSeries {
  /** Name of the column, without the mark of a footnote. */
  readonly name: string;
  readonly unit: string;
  readonly code: string;
  readonly attributes: Attributes;
}

const specificationOf = (basis: string): string =>
  JSON.stringify(
    [
      { name: 'basis', value: basis },
      { name: 'source', value: 'The World Bank: Commodity Price Data (The Pink Sheet)' },
      { name: 'licence', value: 'CC BY 4.0' },
      { name: 'changes', value: 'values as published, dated on the last day of the month' },
    ].map((entry, index) => ({ ...entry, order: index + 1 })),
  );

const seriesOf = (
  name: string,
  code: string,
  basis: string,
  attributes: Attributes,
): WorldBankSeries => ({
  name,
  unit: '($/mt)',
  code,
  attributes: {
    priceCategory: 'Exchange',
    priceType: 'Price',
    frequency: 'Monthly',
    currency: 'USD',
    unitOfMeasure: 'tonne',
    assessmentLaunchedAt: '1960-01-31',
    specification: specificationOf(basis),
    incoterm: 'In-warehouse',
    region: 'Global',
    ...attributes,
  },
});

/** The columns that are loaded, and the attributes with which their prices are created. */
export const SERIES: readonly WorldBankSeries[] = [
  seriesOf(
    'Aluminum',
    'CP-AL-9001',
    'unalloyed primary ingots, at least 99.7% Al; settlement price from 2005, cash price before',
    {
      market: 'aluminium',
      name: 'Aluminium, exchange cash, monthly average',
      shortName: 'Al exch cash avg',
      product: 'Primary aluminium P1020A',
    },
  ),
  seriesOf(
    'Copper',
    'CP-CU-9001',
    'grade A cathodes and wire bars, at least 99.9935% Cu; settlement price',
    {
      market: 'copper',
      name: 'Copper grade A, exchange cash, monthly average',
      shortName: 'Cu exch cash avg',
      product: 'Copper cathode, grade A',
    },
  ),
  seriesOf(
    'Nickel',
    'CP-NI-9001',
    'cathodes, at least 99.8% Ni; settlement price from 2005, cash price before',
    {
      market: 'nickel',
      name: 'Nickel, exchange cash, monthly average',
      shortName: 'Ni exch cash avg',
      product: 'Nickel metal, primary',
      purity: '99.8% Ni min',
      service: 'None',
    },
  ),
];
