import { instantOf } from './instant.ts';
import type { Newest } from './pulse.ts';
import type { Head } from './revisions.ts';

/** When nothing had been committed yet. */
const NEVER = '1970-01-01 00:00:00+00';

/** The newest revision of a scope; "0" where nothing ever touched it. */
export const revisionOf = ({ scopes }: Newest, scope: string): string =>
  scopes.get(scope)?.revision ?? '0';

/** The head of some scopes and of the reference data, as `headOf` reads it from the database. */
export function headAt(newest: Newest, scopes: readonly string[]): Head {
  let revision = '0';
  let committedAt = NEVER;
  for (const scope of [...scopes, 'reference']) {
    const state = newest.scopes.get(scope);
    if (state === undefined || BigInt(state.revision) <= BigInt(revision)) continue;
    ({ revision, committedAt } = state);
  }
  const reference = revisionOf(newest, 'reference');
  return { revision, committedAt: instantOf(committedAt), reference, epoch: newest.epoch };
}
