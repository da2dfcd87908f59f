import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { agentOf, type HttpRequest, send, type Target } from '../../support/process/load.ts';

/** The outcome of retries after Retry-After. */
export interface RetryCounts {
  /** Requests sent after Retry-After, and those of them that were refused again. */
  readonly retries: number;
  readonly refused: number;
}

/** A timer may come a moment early. */
const EARLY_MS = 5;

/** A closed-loop client that waits for Retry-After. */
export async function compliantClient(
  test: Pick<typeof t, 'teardown'>,
  target: Target,
  ask: HttpRequest,
  isOver: () => boolean,
): Promise<RetryCounts> {
  const agent = agentOf(test, 1);
  const obeyed = { retries: 0, refused: 0 };
  let hasWaited = false;
  // At least one retry, however slow the machine is.
  while (!isOver() || obeyed.retries === 0) {
    const { status, headers } = await send(agent, target, ask);
    if (hasWaited) obeyed.retries += 1;
    if (hasWaited && status !== 200) obeyed.refused += 1;
    hasWaited = status === 429;
    if (hasWaited) await pause(Number(headers['retry-after']) * 1_000 + EARLY_MS);
  }
  return obeyed;
}

/** The percentage of retries after Retry-After that were refused again. */
export function refusedRetries(all: readonly RetryCounts[]): { percent: number; retries: number } {
  const retries = all.reduce((sum, each) => sum + each.retries, 0);
  const refused = all.reduce((sum, each) => sum + each.refused, 0);
  return { percent: (100 * refused) / retries, retries };
}
