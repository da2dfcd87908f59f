/** Currencies by ISO 4217 code: prices of the markets and useful targets of conversion. */
export const CURRENCIES = {
  USD: { name: 'US Dollar', symbol: '$' },
  // The narrow signs of yuan and yen are the same, so the yuan shows its country.
  CNY: { name: 'Chinese Yuan (Renminbi)', symbol: 'CN¥' },
  EUR: { name: 'Euro', symbol: '€' },
  JPY: { name: 'Japanese Yen', symbol: '¥' },
  KRW: { name: 'South Korean Won', symbol: '₩' },
  GBP: { name: 'British Pound', symbol: '£' },
  INR: { name: 'Indian Rupee', symbol: '₹' },
  AUD: { name: 'Australian Dollar', symbol: 'A$' },
  CAD: { name: 'Canadian Dollar', symbol: 'CA$' },
  CHF: { name: 'Swiss Franc', symbol: 'CHF' },
} as const;

export type CurrencyIso = keyof typeof CURRENCIES;
