// Read by the runner as well, which must not load tap: that would run as a test of its own.

/** A measured amount and the most that it may be. */
export interface Bounded {
  readonly amount: number;
  readonly most: number;
  readonly unit: string;
}

/** What was measured, and what it may be; it is rounded only where it is printed. */
export const within = (amount: number, most: number, unit = 'ms'): Bounded => ({
  amount,
  most,
  unit,
});

/** A count of requests that failed. */
export const failedOf = (count: number, most = 0): Bounded => within(count, most, 'requests');

/** True if it was measured, and is no more than it may be. */
export const holds = ({ amount, most }: Omit<Bounded, 'unit'>): boolean =>
  Number.isFinite(amount) && amount <= most;

/** What was counted and measured, by what it is called in the table. */
export type Figures = Readonly<Record<string, number | string | Bounded>>;

export const isBounded = (value: Figures[string]): value is Bounded => typeof value === 'object';

/** Units of times, of how one is to another, and of what grows in one: a machine may stall. */
const TIMES: ReadonlySet<string> = new Set(['ms', 'µs', '×', 'MB/h']);

/** True if it is one of those. */
export const isOfTime = ({ unit }: Bounded): boolean => TIMES.has(unit);

/** By how much more than it may be a time is that of a fault, and of no machine that stalls. */
const FAR = 3;

/** True if a time is so far beyond what it may be; `slackMs` more where others load the machine. */
export const isFar = ({ amount, most, unit }: Bounded, slackMs = 0): boolean =>
  !(amount <= FAR * most + (unit === 'ms' ? slackMs : 0));

/** What other tests that load the machine do not make more of. */
const STEADY: ReadonlySet<string> = new Set(['MB', 'answers', 'names', 'fetches', 'connections']);

/** True if its bound holds beside other tests as well. */
export const isSteady = ({ unit }: Bounded): boolean => STEADY.has(unit);
