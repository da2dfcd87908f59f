/** Calendar periods that an aggregated point can stand for; a week is one of ISO 8601. */
export const PERIODS = ['week', 'month', 'quarter', 'year'] as const;
export type Period = (typeof PERIODS)[number];

/** How the assessments of a period become one point. */
export const METHODS = ['average', 'first', 'last', 'min', 'max'] as const;
export type Method = (typeof METHODS)[number];

/** The spans that a summary looks back over, in the order in which it shows them. */
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
