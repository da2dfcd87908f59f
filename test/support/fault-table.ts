import type { Bounded, Done, Figures } from './faults.ts';

/** A fault of the catalogue that no test of `test/faults` does. */
export interface Elsewhere {
  readonly title: string;
  /** What those test files assert. */
  readonly criterion?: string;
  /** Test files that show it, or none. */
  readonly files?: readonly string[];
  /** What came of it when it was done by hand: it needs what is not in the repository. */
  readonly byHand?: string;
  /** Why it is not done, or what of it. */
  readonly why?: string;
}

const isBounded = (value: Figures[string]): value is Bounded => typeof value === 'object';

/** Whether it was measured, and is no more than it may be. */
const holds = ({ amount, most }: Omit<Bounded, 'unit'>): boolean =>
  Number.isFinite(amount) && amount <= most;

/** Rounds to so many digits, and to none of those before the point. */
function rounded(value: number, digits: number): number {
  const whole = Math.trunc(Math.abs(value)).toString().length;
  return Number(value.toPrecision(Math.max(digits, whole)));
}

/** Both with three digits, or with as many as it takes to see which of the two is more. */
function amountsOf({ amount, most, unit }: Bounded): string {
  if (!Number.isFinite(amount)) return `not measured (≤ ${most})`;
  const digits = Array.from({ length: 15 }, (_, at) => at + 3);
  const shown = digits.map((each) => ({
    amount: rounded(amount, each),
    most: rounded(most, each),
  }));
  const told = shown.find((each) => holds(each) === holds({ amount, most })) ?? { amount, most };
  return `${told.amount} ${unit} (≤ ${told.most})`;
}

const figure = ([name, value]: [string, Figures[string]]): string =>
  isBounded(value)
    ? `${name} ${amountsOf(value)}`
    : `${name} ${typeof value === 'number' ? value.toLocaleString('en') : value}`;

/** What is to be said of a fault that was done. */
export function verdictOf({ figures, failed }: Done): 'held' | 'missed' | 'FAILED' {
  if (failed) return 'FAILED';
  return Object.values(figures).filter(isBounded).every(holds) ? 'held' : 'missed';
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |\n`;

const numberOf = (id: string): number => Number(/\d+/.exec(id)?.[0]);

/** The whole catalogue as a table: what was done now, what other tests show, what is not done. */
export function tableOf(
  elsewhere: Readonly<Record<string, Elsewhere>>,
  done: readonly Done[],
): string {
  const rows: (readonly string[])[] = done.map((each) => [
    each.id,
    each.title,
    each.criterion,
    Object.entries(each.figures).map(figure).join('; '),
    verdictOf(each),
  ]);
  for (const [id, { title, criterion, files = [], byHand, why }] of Object.entries(elsewhere)) {
    const where = files.map((file) => `\`${file}\``).join(', ');
    const verdict = files.length > 0 ? 'in `npm test`' : byHand ? 'by hand' : 'not done';
    const told = [criterion, why].filter((each) => each !== undefined).join('. ');
    rows.push([id, title, told, byHand ?? where, verdict]);
  }
  const sorted = rows.toSorted(([a = ''], [b = '']) => numberOf(a) - numberOf(b));
  const head = ['', 'Fault', 'Must hold', 'Figures', 'Verdict'];
  return row(head) + row(head.map(() => '---')) + sorted.map(row).join('');
}
