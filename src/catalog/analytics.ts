/** Calendar periods of aggregated points; weeks as in ISO 8601. */
export const PERIODS = ['week', 'month', 'quarter', 'year'] as const;
export type Period = (typeof PERIODS)[number];

/** Methods that aggregate the observations of a period into one point. */
export const METHODS = ['average', 'first', 'last', 'min', 'max'] as const;
export type Method = (typeof METHODS)[number];

/** What the values of a price are: of a day, or the means of a month or a year. */
export const OBSERVES = ['day', 'month-mean', 'year-mean'] as const;
export type Observes = (typeof OBSERVES)[number];

/** A period that a published value may be the mean of. */
export type MeanPeriod = Extract<Period, 'month' | 'year'>;

/** The period of a mean, by `observes`; null for values of a day. */
export const MEAN_PERIODS: Readonly<Record<Observes, MeanPeriod | null>> = {
  day: null,
  'month-mean': 'month',
  'year-mean': 'year',
};

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
