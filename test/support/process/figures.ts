// The runner imports this module too and must not load tap, which would run as a test.

/** A measured amount and its bound. */
export interface Bounded {
  readonly amount: number;
  readonly most: number;
  readonly unit: string;
}

/** A measured amount with its bound; only printing rounds it. */
export const within = (amount: number, most: number, unit = 'ms'): Bounded => ({
  amount,
  most,
  unit,
});

/** A count of requests that failed. */
export const failedOf = (count: number, most = 0): Bounded => within(count, most, 'requests');

/** True if the amount was measured and is within its bound. */
export const holds = ({ amount, most }: Omit<Bounded, 'unit'>): boolean =>
  Number.isFinite(amount) && amount <= most;

/** Counts and measurements by their name in the table. */
export type Figures = Readonly<Record<string, number | string | Bounded>>;

export const isBounded = (value: Figures[string]): value is Bounded => typeof value === 'object';

/** Units of times, ratios and growth rates, which a stalled machine distorts. */
const TIMES: ReadonlySet<string> = new Set(['ms', 'µs', '×', 'MB/h']);

/** True if the figure has such a unit. */
export const isOfTime = ({ unit }: Bounded): boolean => TIMES.has(unit);

/** A time beyond this multiple of its bound is a fault, not a stalled machine. */
const FAR = 3;

/** True if a time exceeds `FAR` × its bound plus `slackMs` for a loaded machine. */
export const isFar = ({ amount, most, unit }: Bounded, slackMs = 0): boolean =>
  !(amount <= FAR * most + (unit === 'ms' ? slackMs : 0));

/** Units that other tests on the same machine do not inflate. */
const STEADY: ReadonlySet<string> = new Set(['MB', 'answers', 'names', 'fetches', 'connections']);

/** True if the bound also holds beside other tests. */
export const isSteady = ({ unit }: Bounded): boolean => STEADY.has(unit);
