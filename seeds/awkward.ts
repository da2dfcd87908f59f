/**
 * Cases that a reader of prices must be able to live with, on purpose among the samples. Others
 * come from the tables: negative fees, payables over 100, values below 2 and above 900,000.
 */

/** Launched, but no value was published yet. */
export const WITHOUT_VALUES: ReadonlySet<string> = new Set(['CP-SO-0016']);

/** No longer assessed: code → day of the last value. */
export const DISCONTINUED: Readonly<Record<string, string>> = { 'CP-EL-0010': '2025-03-27' };

/** No value between two days, both included: a halted exchange, a closed port. */
export const SUSPENDED: Readonly<Record<string, readonly [first: string, last: string]>> = {
  'CP-NI-0001': ['2022-03-08', '2022-03-15'],
  'CP-MN-0002': ['2023-07-01', '2023-10-15'],
};

/**
 * Moves that are no market: when lithium in black mass got a payable of its own, those of nickel
 * and cobalt fell once. Code → the day, and how much higher all values before it are.
 */
export const STEPS: Readonly<Record<string, readonly [day: string, higherBefore: number]>> = {
  'CP-RC-0001': ['2023-09-06', 3],
  'CP-RC-0002': ['2023-09-06', 3],
};

/** A point that was published wrong, by so many ticks, and corrected the next day. */
export interface Correction {
  readonly code: string;
  readonly date: string;
  readonly ticks: number;
}

export const CORRECTIONS: readonly Correction[] = [
  { code: 'CP-NI-0001', date: '2024-05-14', ticks: 120 },
  { code: 'CP-NI-0011', date: '2025-06-11', ticks: -4 },
  { code: 'CP-LI-0001', date: '2023-02-16', ticks: 10 },
  { code: 'CP-LI-0001', date: '2023-02-17', ticks: 10 },
  { code: 'CP-CU-0008', date: '2025-03-06', ticks: -6 },
  { code: 'CP-LB-0003', date: '2024-10-10', ticks: 3 },
  { code: 'CP-RE-0012', date: '2022-11-03', ticks: -5 },
  { code: 'CP-SG-0012', date: '2026-04-08', ticks: 2 },
];
