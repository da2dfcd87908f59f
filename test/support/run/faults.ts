import { appendFileSync } from 'node:fs';
import t from 'tap';
import {
  type Bounded,
  type Figures,
  holds,
  isBounded,
  isFar,
  isOfTime,
  isSteady,
} from '../process/figures.ts';

type Test = typeof t;

/** How much of each fault is done: a part of every run of the tests, or a run of its own. */
export type Length = 'short' | 'full' | 'long';

const LENGTHS: readonly string[] = ['short', 'full', 'long'] satisfies Length[];

/** Of this run, as `test/run.ts` says. */
export const LENGTH = (LENGTHS.find((each) => each === process.env['FAULTS_LENGTH']) ??
  'short') as Length;

/** One of three by the length of this run; the last is that of a long one. */
export const byLength = <T>(short: T, full: T, long: T = full): T =>
  ({ short, full, long })[LENGTH];

/** A fault of the catalogue as it was done in a run. */
export interface Done {
  readonly id: string;
  readonly title: string;
  readonly criterion: string;
  readonly figures: Figures;
  readonly failed: boolean;
}

/** What a test outside of `test/faults` counted for a fault of the catalogue. */
export interface Told {
  readonly id: string;
  readonly figures: Figures;
}

/** How much later than that something may be while other tests load the machine. */
const SLACK_MS = 10_000;

/** True if a figure is what no machine explains that other tests load, or that stalls. */
function isFault(figure: Bounded): boolean {
  const isShort = LENGTH === 'short';
  if (isOfTime(figure)) {
    // Of short runs only times in seconds say something.
    return (!isShort || figure.unit === 'ms') && isFar(figure, isShort ? SLACK_MS : 0);
  }
  return (!isShort || isSteady(figure)) && !holds(figure);
}

/**
 * Asserts the bounds: those of counts, shares and memory as they are, a time at three times its
 * bound, up to which it is only told as missed. In a run of all tests, where others load the
 * machine, requests may fail and shares differ, and times may be longer by seconds.
 */
export function checkBounds(test: Pick<Test, 'ok'>, figures: Figures): void {
  for (const [name, value] of Object.entries(figures)) {
    if (!isBounded(value)) continue;
    test.ok(!isFault(value), `${name}: ${value.amount} ${value.unit}; at most ${value.most}`);
  }
}

/** Notes what was done for the table at the end of a run, where somebody wants one. */
function note(done: Done | Told): void {
  const file = process.env['FAULTS_RESULTS'];
  if (file) appendFileSync(file, `${JSON.stringify(done)}\n`);
}

/**
 * Tells the table what a test outside of `test/faults` counted, besides its checks; what is told
 * twice under one name is added up.
 */
export const tellFigures = (id: string, figures: Figures): void => note({ id, figures });

/**
 * Declares a fault of the catalogue: `work` does it for real, asserts what must hold in kinds, and
 * returns its figures, whose bounds must hold in a run of the faults alone.
 */
export function fault(
  id: string,
  title: string,
  criterion: string,
  work: (t: Test) => Promise<Figures>,
): void {
  void t.test(`${id}: ${title}`, async (t) => {
    const told = { id, title, criterion };
    try {
      const figures = await work(t as Test);
      checkBounds(t, figures);
      note({ ...told, figures, failed: !t.passing() });
      t.comment(JSON.stringify(figures));
    } catch (error) {
      note({ ...told, figures: { error: String(error).split('\n')[0] ?? '' }, failed: true });
      throw error;
    }
  });
}
