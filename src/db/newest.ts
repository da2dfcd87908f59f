import { instantOf } from './instant.ts';
import type { Newest } from './link/pulse.ts';
import { type Head, isAfter } from './revisions.ts';

/** When nothing had been committed yet. */
const NEVER = '1970-01-01 00:00:00+00';

/** The newest revision of a scope; "0" where nothing ever touched it. */
export const revisionOf = ({ scopes }: Newest, scope: string): string =>
  scopes.get(scope)?.revision ?? '0';

/** Heads by their scopes, for as long as a look is the newest. */
const heads = new WeakMap<Newest, Map<string, Head>>();

/** The head of some scopes and of the reference data, as `headOf` reads it from the database. */
export function headAt(newest: Newest, scopes: readonly string[]): Head {
  let known = heads.get(newest);
  if (known === undefined) {
    known = new Map();
    heads.set(newest, known);
  }
  const key = scopes.join();
  const found = known.get(key) ?? madeHead(newest, scopes);
  known.set(key, found);
  return found;
}

function madeHead(newest: Newest, scopes: readonly string[]): Head {
  let revision = '0';
  let committedAt = NEVER;
  for (const scope of [...scopes, 'reference']) {
    const state = newest.scopes.get(scope);
    if (state === undefined || !isAfter(state.revision, revision)) continue;
    ({ revision, committedAt } = state);
  }
  const reference = revisionOf(newest, 'reference');
  return { revision, committedAt: instantOf(committedAt), reference, epoch: newest.epoch };
}
