/** Extent of each fault: short as part of all tests, full or long in a run of its own. */
export type Length = 'short' | 'full' | 'long';

const LENGTHS: readonly string[] = ['short', 'full', 'long'] satisfies Length[];

/** The length of this run, set by `test/run.ts`. */
export const LENGTH = (LENGTHS.find((each) => each === process.env['FAULTS_LENGTH']) ??
  'short') as Length;

/** Selects one of three values by the length of this run. */
export const byLength = <T>(short: T, full: T, long: T = full): T =>
  ({ short, full, long })[LENGTH];
