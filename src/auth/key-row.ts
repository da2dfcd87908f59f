import { sql } from 'kysely';
import { instantOf } from '../db/instant.ts';

/** A time of the database as RFC 3339 text; null for none and for infinity. */
export const instantOrNull = (time: string | null): string | null =>
  time === null || time === 'infinity' ? null : instantOf(time);

/** The scopes of the key that a query on `api_key` is at. */
export const scopesOfRow = sql<string[]>`array(
  select scope from api_key_scope where api_key_id = api_key.id order by scope)`;

/** What a key may do, where it has limits of its own; 0 is no limit. */
export interface KeyLimits {
  readonly perMinute: number | null;
  readonly burst: number | null;
  readonly concurrent: number | null;
}

interface LimitColumns {
  readonly rate_per_minute: number | null;
  readonly rate_burst: number | null;
  readonly concurrent: number | null;
}

/** The limits in a row of `api_key`; null when it has none of its own. */
export function limitsOf(row: LimitColumns): KeyLimits | null {
  const { rate_per_minute: perMinute, rate_burst: burst, concurrent } = row;
  return perMinute === null && concurrent === null ? null : { perMinute, burst, concurrent };
}
