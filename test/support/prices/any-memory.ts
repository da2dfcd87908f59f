import type { AnswerWork } from '../../../src/prices/answer/answer.ts';

/** A request that ends never, and may hold any memory. */
export const ANY_MEMORY: AnswerWork = {
  signal: new AbortController().signal,
  hold: () => true,
  holdMax: Number.POSITIVE_INFINITY,
};
