import { type Figures, isBounded } from '../process/figures.ts';
import type { AddedFigures, FaultResult } from './faults.ts';

/** The totals, each with the names of the figures that it adds up. */
const REQUESTS =
  /^(requests|requests (at .+ core|meanwhile)|other requests|answers|bodies|tried|forgeries)$/;
const FAILED = /^(failed|failed at .+ core|failures|5xx|wrong)$/;
const BAD = /^(bodies|malformed requests|texts|payloads|forgeries|tried|tokens|workbooks)$/;
const RECOVERIES = /^(recovered after|pool complete after|as fast as before after|answers after)$/;

const amountOf = (value: Figures[string]): number =>
  isBounded(value) ? value.amount : typeof value === 'number' ? value : 0;

/** The part of a figure that violates a guarantee: its excess over a bound, or all of it. */
const excessOf = (value: Figures[string]): number =>
  isBounded(value) ? Math.max(0, value.amount - value.most) : amountOf(value);

const textOf = (value: number): string => Math.round(value).toLocaleString('en');

/** The totals of a run in a sentence: verdicts, requests, bad inputs and recoveries. */
export function sumsOf(
  verdicts: readonly string[],
  noted: readonly (FaultResult | AddedFigures)[],
): string {
  const all = noted.flatMap(({ figures }) => Object.entries<Figures[string]>(figures));
  const amounts = (names: RegExp, of = amountOf): number[] =>
    all.filter(([name]) => names.test(name)).map(([, value]) => of(value));
  const sum = (names: RegExp, of = amountOf): string =>
    textOf(amounts(names, of).reduce((a, b) => a + b, 0));
  const times = (verdict: string): number => verdicts.filter((each) => each === verdict).length;
  const longest = Math.max(0, ...amounts(RECOVERIES));
  return (
    `In total: ${verdicts.length} faults: ${times('held')} held, ${times('missed')} missed a ` +
    `time bound, ${times('FAILED')} failed, ${times('by hand')} tested by hand; ` +
    `${sum(REQUESTS)} requests: ${sum(FAILED)} failed, ${sum(FAILED, excessOf)} of them beyond ` +
    `the bounds; ${sum(BAD)} bad inputs; longest recovery ${textOf(longest)} ms.`
  );
}
