import { type Figures, isBounded } from '../process/figures.ts';
import type { AddedFigures, FaultResult } from './faults.ts';

/** Headings of the sums, each with the names of its figures in the table. */
const REQUESTS =
  /^(requests|requests at .+ core|other requests|asked meanwhile|answers|bodies|tried|forgeries)$/;
const FAILED = /^(failed|failed at .+ core|failures|5xx|wrong)$/;
const BAD = /^(bodies|malformed requests|texts|payloads|forgeries|tried|tokens|workbooks)$/;
const RECOVERIES = /^(recovered after|whole after|as fast as before after|answers after)$/;

const amountOf = (value: Figures[string]): number =>
  isBounded(value) ? value.amount : typeof value === 'number' ? value : 0;

/** The violations among them: all, except figures within a bound. */
const excessOf = (value: Figures[string]): number =>
  isBounded(value) ? Math.max(0, value.amount - value.most) : amountOf(value);

const textOf = (value: number): string => Math.round(value).toLocaleString('en');

/** All of a run in a sentence: faults and their verdicts, requests, bad inputs, recoveries. */
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
    `In sum: ${verdicts.length} faults, of which ${times('held')} held, ${times('missed')} ` +
    `missed a time, ${times('FAILED')} failed and ${times('by hand')} were done by hand; ` +
    `${sum(REQUESTS)} requests, of which ${sum(FAILED)} failed, ` +
    `${sum(FAILED, excessOf)} of them that must not; ` +
    `${sum(BAD)} bad inputs; the longest recovery took ${textOf(longest)} ms.`
  );
}
