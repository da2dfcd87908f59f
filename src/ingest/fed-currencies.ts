/** The currency of a column of the H.10, and the days on which the country had it. */
export interface CountryCurrency {
  readonly iso: string;
  /** Null where it is older than any rate. */
  readonly first: string | null;
  /** Null where it goes on. */
  readonly last: string | null;
}

const since = (iso: string, first: string): CountryCurrency => ({ iso, first, last: null });
const until = (iso: string, last: string): CountryCurrency => ({ iso, first: null, last });
const always = (iso: string): CountryCurrency => ({ iso, first: null, last: null });

/** The last day of the notes of those that took the euro first. */
const EURO = '2001-12-31';

/**
 * The columns of the H.10 by country. The Federal Reserve names countries and no currencies, so
 * that a name must be read with the date: a rate of Germany is one of the mark, until there was
 * none any more. Currencies and days are those of ISO 4217.
 */
export const H10_COUNTRIES: Readonly<Record<string, CountryCurrency>> = {
  Australia: always('AUD'),
  Austria: until('ATS', EURO),
  Belgium: until('BEF', EURO),
  Brazil: since('BRL', '1994-07-01'),
  Canada: always('CAD'),
  China: always('CNY'),
  Denmark: always('DKK'),
  Euro: since('EUR', '1999-01-01'),
  Finland: until('FIM', EURO),
  France: until('FRF', EURO),
  Germany: until('DEM', EURO),
  Greece: until('GRD', '2000-12-31'),
  'Hong Kong': always('HKD'),
  India: always('INR'),
  Ireland: until('IEP', EURO),
  Italy: until('ITL', EURO),
  Japan: always('JPY'),
  Malaysia: always('MYR'),
  Mexico: since('MXN', '1993-01-01'),
  Netherlands: until('NLG', EURO),
  'New Zealand': always('NZD'),
  Norway: always('NOK'),
  Portugal: until('PTE', EURO),
  Singapore: always('SGD'),
  'South Africa': always('ZAR'),
  'South Korea': always('KRW'),
  Spain: until('ESP', EURO),
  'Sri Lanka': always('LKR'),
  Sweden: always('SEK'),
  Switzerland: always('CHF'),
  Taiwan: always('TWD'),
  Thailand: always('THB'),
  'United Kingdom': always('GBP'),
  // The Federal Reserve gives the years before 2008 in the bolívar of 2008, which is a thousand of
  // the older ones. It has been renewed twice since, and the tables do not say which is meant.
  Venezuela: until('VEF', '2018-08-19'),
};
