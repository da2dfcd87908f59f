import { type Bounded, type Figures, holds, isBounded } from '../process/figures.ts';
import { sumsOf } from './fault-sums.ts';
import type { AddedFigures, FaultResult } from './faults.ts';
import type { Tally } from './tally.ts';

/** A fault of the catalogue without a test in `test/faults`. */
export interface Elsewhere {
  readonly title: string;
  /** The guarantee that the test files assert. */
  readonly criterion?: string;
  /** Test files that cause the fault. */
  readonly files?: readonly string[];
  /** The result of a manual test, which needs tools outside of the repository. */
  readonly byHand?: string;
  /** The reason why the fault is not tested, or only in part. */
  readonly why?: string;
}

/** Rounds to a number of digits; integer digits are never rounded. */
function rounded(value: number, digits: number): number {
  const whole = Math.trunc(Math.abs(value)).toString().length;
  return Number(value.toPrecision(Math.max(digits, whole)));
}

/** Both amounts with three digits, or with as many as show which of them is larger. */
function amountsOf({ amount, most, unit }: Bounded): string {
  if (!Number.isFinite(amount)) return `not measured (≤ ${most})`;
  const digits = Array.from({ length: 15 }, (_, at) => at + 3);
  const shown = digits.map((each) => ({
    amount: rounded(amount, each),
    most: rounded(most, each),
  }));
  const text = shown.find((each) => holds(each) === holds({ amount, most })) ?? { amount, most };
  return `${text.amount} ${unit} (≤ ${text.most})`;
}

const figure = ([name, value]: [string, Figures[string]]): string =>
  isBounded(value)
    ? `${name} ${amountsOf(value)}`
    : `${name} ${typeof value === 'number' ? value.toLocaleString('en') : value}`;

const figuresText = (figures: Figures): string => Object.entries(figures).map(figure).join('; ');

type Verdict = 'held' | 'missed' | 'FAILED';

/** The verdict on a fault that was tested. */
export function verdictOf({ figures, failed }: Pick<FaultResult, 'figures' | 'failed'>): Verdict {
  if (failed) return 'FAILED';
  return Object.values(figures).filter(isBounded).every(holds) ? 'held' : 'missed';
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |\n`;

const numberOf = (id: string): number => Number(/\d+/.exec(id)?.[0]);

type FaultOutcome = readonly [figures: string, verdict: string];

/** The outcome of a fault without a test. */
const apart = (byHand?: string): FaultOutcome =>
  byHand === undefined ? ['', 'not done'] : [byHand, 'by hand'];

/** Excess over the bound; infinite if not measured. */
const beyond = ({ amount, most }: Bounded): number =>
  Number.isFinite(amount) ? amount - most : Number.POSITIVE_INFINITY;

const worse = (one: Bounded, other: Bounded): Bounded =>
  beyond(one) > beyond(other) ? one : other;

/** Combines figures of several tests: sums of counts, and the worst of each bounded figure. */
function combined(all: readonly Figures[]): Figures {
  const sum: Record<string, Figures[string]> = {};
  for (const [name, value] of all.flatMap(Object.entries<Figures[string]>)) {
    const known = sum[name];
    if (typeof known === 'number' && typeof value === 'number') sum[name] = known + value;
    else sum[name] = known && isBounded(known) && isBounded(value) ? worse(known, value) : value;
  }
  return sum;
}

/** The outcome of test files outside of `test/faults`: their checks and recorded figures. */
function outcomeOf(
  files: readonly string[],
  own: readonly Figures[],
  tallies: ReadonlyMap<string, Tally>,
): FaultOutcome {
  const where = files.map((file) => `\`${file}\``).join(', ');
  const counts = files.map((file) => tallies.get(file) ?? { passed: 0, failed: 0 });
  const sumOf = (what: keyof Tally): number => counts.reduce((sum, each) => sum + each[what], 0);
  const failed = sumOf('failed') > 0;
  // A file without a check proves nothing.
  const isDone = failed || counts.every(({ passed }) => passed > 0);
  if (!isDone) return [where, 'not run'];
  const checks = {
    checks: sumOf('passed') + sumOf('failed'),
    ...(failed ? { 'of them failed': sumOf('failed') } : {}),
  };
  const figures = combined(own);
  return [`${figuresText({ ...checks, ...figures })}; ${where}`, verdictOf({ figures, failed })];
}

/** The catalogue as a table of the results, with a sentence of sums below. */
export function tableOf(
  elsewhere: Readonly<Record<string, Elsewhere>>,
  noted: readonly (FaultResult | AddedFigures)[],
  tallies: ReadonlyMap<string, Tally>,
): string {
  const done = noted.filter((each) => 'title' in each);
  const rows: (readonly string[])[] = done.map((each) => [
    each.id,
    each.title,
    each.criterion,
    figuresText(each.figures),
    verdictOf(each),
  ]);
  for (const [id, { title, criterion, files = [], byHand, why }] of Object.entries(elsewhere)) {
    const must = [criterion, why].filter((each) => each !== undefined).join('. ');
    const own = noted.filter((each) => each.id === id).map(({ figures }) => figures);
    const outcome = files.length > 0 ? outcomeOf(files, own, tallies) : apart(byHand);
    rows.push([id, title, must, ...outcome]);
  }
  const sorted = rows.toSorted(([a = ''], [b = '']) => numberOf(a) - numberOf(b));
  const head = ['', 'Fault', 'Must hold', 'Figures', 'Verdict'];
  const table = row(head) + row(head.map(() => '---')) + sorted.map(row).join('');
  const verdicts = sorted.map((each) => each.at(-1) ?? '');
  return `${table}\n${sumsOf(verdicts, noted)}\n`;
}
