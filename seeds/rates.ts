import { dateOf, OPEN_DAYS, WEEKDAYS } from './calendar.ts';
import { growth } from './random.ts';
import type { CurrencyIso } from './reference/currencies.ts';
import type { Drivers } from './types.ts';
import { pathOf } from './walk.ts';

/** Publishers of exchange rates. The sample rates are ours and never mix with real ones. */
export const FX_SOURCES = [
  {
    slug: 'ECB',
    name: 'European Central Bank euro foreign exchange reference rates',
    base: 'EUR',
    isSample: false,
  },
  {
    slug: 'FED',
    name: 'Federal Reserve foreign exchange rates (H.10)',
    base: 'USD',
    isSample: false,
  },
  {
    slug: 'SAMPLE',
    name: 'Sample exchange rates, synthetic values for demonstration',
    base: 'EUR',
    isSample: true,
  },
] as const satisfies readonly {
  slug: string;
  name: string;
  base: CurrencyIso;
  isSample: boolean;
}[];

export const SAMPLE_SOURCE = 'SAMPLE';

interface RateWalk {
  /** Units of the currency for one euro on the last day. */
  readonly last: number;
  readonly decimals: number;
  readonly volatility: number;
  readonly drivers: Drivers;
}

/** Invented levels of a believable size; the decimals are those that the ECB publishes. */
const RATE_WALKS: Readonly<Record<Exclude<CurrencyIso, 'EUR'>, RateWalk>> = {
  USD: { last: 1.165, decimals: 4, volatility: 0.01, drivers: { dollar: 1 } },
  CNY: { last: 7.98, decimals: 4, volatility: 0.03, drivers: { dollar: 0.8 } },
  JPY: { last: 176, decimals: 2, volatility: 0.08, drivers: {} },
  KRW: { last: 1685, decimals: 2, volatility: 0.05, drivers: { dollar: 0.4 } },
  GBP: { last: 0.868, decimals: 5, volatility: 0.04, drivers: {} },
  INR: { last: 104, decimals: 4, volatility: 0.04, drivers: { dollar: 0.7 } },
  AUD: { last: 1.72, decimals: 4, volatility: 0.06, drivers: {} },
  CAD: { last: 1.61, decimals: 4, volatility: 0.05, drivers: { dollar: 0.5 } },
  CHF: { last: 0.928, decimals: 4, volatility: 0.04, drivers: {} },
};

export interface SampleRate {
  readonly currency: CurrencyIso;
  readonly date: string;
  /** Units of the currency for one euro, as decimal text without trailing zeros. */
  readonly rate: string;
}

/** A whole number of the smallest decimals as decimal text, without trailing zeros. */
function rateText(scaled: number, decimals: number): string {
  const digits = String(scaled).padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, '');
}

const INDEX = new Map(WEEKDAYS.map((day, index) => [day, index]));

/** The sample rates of every currency on every day of the euro payment system. */
export function sampleRates(): SampleRate[] {
  return Object.entries(RATE_WALKS).flatMap(([currency, walk]) => {
    const path = pathOf(`rate/${currency}`, walk.volatility, walk.drivers);
    const end = path.at(-1) ?? 0;
    return OPEN_DAYS.target.map((day): SampleRate => {
      const level = walk.last * growth((path[INDEX.get(day) ?? -1] ?? 0) - end);
      const rate = rateText(Math.round(level * 10 ** walk.decimals), walk.decimals);
      return { currency: currency as CurrencyIso, date: dateOf(day), rate };
    });
  });
}
