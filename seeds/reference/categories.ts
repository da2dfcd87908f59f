/** Kinds of price; every market has them. */
export const PRICE_CATEGORIES = {
  spot: 'Spot',
  contract: 'Contract',
  exchange: 'Exchange',
  index: 'Index',
  premium: 'Premium',
  'payable-indicator': 'Payable indicator',
  'processing-fee': 'Processing fee',
} as const;

/** A Price is money for a unit; a Payable a percentage of another price, never converted. */
export const PRICE_TYPES = { price: 'Price', payable: 'Payable' } as const;

export const FREQUENCIES = {
  daily: 'Daily',
  'twice-weekly': 'Twice weekly',
  weekly: 'Weekly',
  fortnightly: 'Fortnightly',
  monthly: 'Monthly',
  quarterly: 'Quarterly',
  annual: 'Annual',
} as const;

export const FREQUENCY_SHORT_NAMES: Readonly<Record<keyof typeof FREQUENCIES, string>> = {
  daily: 'D',
  'twice-weekly': '2xW',
  weekly: 'W',
  fortnightly: '2W',
  monthly: 'M',
  quarterly: 'Q',
  annual: 'A',
};
