import type { Market } from '../catalog/markets.ts';
import { recordExample, responseExample } from './examples.ts';

/** A request that converts. */
export const CONVERTING_REQUEST = {
  filters: { dateFrom: '2026-03-05' },
  options: {
    includeSeries: true,
    includeSummary: true,
    currency: 'EUR',
    unitOfMeasure: 'lb',
  },
};

const pound = { id: '3f2504e0-4f89-51d3-9a0c-000000000007', name: 'Pound', symbol: 'lb' };
const euro = {
  id: '3f2504e0-4f89-51d3-9a0c-000000000008',
  name: 'Euro',
  iso: 'EUR',
  symbol: '€',
};

/** The assessment before the one shown was 18650 USD/t, at 1.1641 USD for a euro. */
const SUMMARY = {
  latest: { date: '2026-03-05', mid: 7.34899 },
  previous: { date: '2026-03-04', mid: 7.26699 },
  changes: {
    previous: { absolute: 0.0820006, percent: 1.1284, baseDate: '2026-03-04' },
    week: null,
    fortnight: null,
    month: null,
    quarter: null,
    halfYear: null,
    year: null,
    yearToDate: null,
  },
};

const CONVERSION = {
  status: 'converted',
  reason: null,
  from: { currency: 'USD', unitOfMeasure: 'Tonne' },
  to: { currency: 'EUR', unitOfMeasure: 'Pound' },
  unitFactor: { multiply: '0.45359237', divide: '1000' },
  source: 'ECB',
  rounding: 'half-even, 6 significant, at least 2 decimals',
};

/** What the converting request answers: the record of the plain example, at an invented rate. */
export function convertedExample(market: Market) {
  const { unitOfMeasure: _unit, currency: _currency, series, ...record } = recordExample(market);
  const { priceType, ...head } = record;
  const fx = { date: '2026-03-05', base: 'EUR', from: '1.1604', to: '1' };
  return {
    ...responseExample(market),
    data: [
      {
        ...head,
        unitOfMeasure: pound,
        currency: euro,
        priceType,
        conversion: CONVERSION,
        summary: SUMMARY,
        series: series.map((each) => ({ ...each, low: 7.3097, mid: 7.34899, high: 7.38788, fx })),
      },
    ],
  };
}
