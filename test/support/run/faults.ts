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
import { LENGTH } from './length.ts';

type Test = typeof t;

/** The result of a fault of the catalogue. */
export interface FaultResult {
  readonly id: string;
  readonly title: string;
  readonly criterion: string;
  readonly figures: Figures;
  readonly failed: boolean;
}

/** Figures that a test outside of `test/faults` adds to a fault of the catalogue. */
export interface AddedFigures {
  readonly id: string;
  readonly figures: Figures;
}

/** Additional time while other tests load the machine. */
const SLACK_MS = 10_000;

/** True if a figure is beyond its bound by more than a busy machine explains. */
function isFault(figure: Bounded): boolean {
  const isShort = LENGTH === 'short';
  if (isOfTime(figure)) {
    // In short runs only times in seconds are significant.
    return (!isShort || figure.unit === 'ms') && isFar(figure, isShort ? SLACK_MS : 0);
  }
  return (!isShort || isSteady(figure)) && !holds(figure);
}

/**
 * Asserts the bounds: counts, shares and memory as they are, times at three times their bound; up
 * to that the table reports a miss. In a run of all tests, which loads the machine, requests may
 * fail, shares may differ, and times may be longer by seconds.
 */
export function checkBounds(test: Pick<Test, 'ok'>, figures: Figures): void {
  for (const [name, value] of Object.entries(figures)) {
    if (!isBounded(value)) continue;
    test.ok(!isFault(value), `${name}: ${value.amount} ${value.unit}; at most ${value.most}`);
  }
}

/** Records a result for the table of the run, if there is one. */
function record(result: FaultResult | AddedFigures): void {
  const file = process.env['FAULTS_RESULTS'];
  if (file) appendFileSync(file, `${JSON.stringify(result)}\n`);
}

/**
 * Records figures of a test outside of `test/faults` for the table, besides its checks. Figures of
 * the same name are summed.
 */
export const recordFigures = (id: string, figures: Figures): void => record({ id, figures });

/**
 * Declares a fault of the catalogue: `work` causes it, asserts the guarantees, and returns its
 * figures, whose bounds must hold in a run of the faults alone.
 */
export function fault(
  id: string,
  title: string,
  criterion: string,
  work: (t: Test) => Promise<Figures>,
): void {
  void t.test(`${id}: ${title}`, async (t) => {
    const subject = { id, title, criterion };
    try {
      const figures = await work(t as Test);
      checkBounds(t, figures);
      record({ ...subject, figures, failed: !t.passing() });
      t.comment(JSON.stringify(figures));
    } catch (error) {
      record({ ...subject, figures: { error: String(error).split('\n')[0] ?? '' }, failed: true });
      throw error;
    }
  });
}
