import type pg from 'pg';
import type { Breaker } from './breaker.ts';
import type { Notices } from './notices.ts';
import { orAborted } from './or-aborted.ts';
import type { Reads } from './reads.ts';

/** What short statements are asked over. */
interface Lines {
  readonly notices: Notices;
  readonly reads: Reads;
  readonly breaker: Breaker;
}

/**
 * Asks short statements over the connection that hears notices, which is there when one is heard: a
 * pool that was not used for a while has to make its own first, and prepare the statement there.
 * Where it is not there they are read as all others.
 */
export const atOnce =
  ({ notices, reads, breaker }: Lines): Reads['query'] =>
  async <Row extends pg.QueryResultRow>(query: pg.QueryConfig, signal?: AbortSignal) =>
    (await orAborted(notices.ask<Row>(query), breaker.lifeline)) ?? reads.query<Row>(query, signal);
