/** Calendar periods of aggregated points; weeks as in ISO 8601. */
export const PERIODS = ['week', 'month', 'quarter', 'year'] as const;
export type Period = (typeof PERIODS)[number];

/** Methods that aggregate the observations of a period into one point. */
export const METHODS = ['average', 'first', 'last', 'min', 'max'] as const;
export type Method = (typeof METHODS)[number];

/** The spans of the changes in a summary, in its order. */
export const SPANS = [
  'previous',
  'week',
  'fortnight',
  'month',
  'quarter',
  'halfYear',
  'year',
  'yearToDate',
] as const;
export type Span = (typeof SPANS)[number];
