import { type Kysely, sql } from 'kysely';
import type { Database } from '../db/schema.ts';
import { type CurrencyRates, currencyRates, type RateTable } from './rate-table.ts';

/** The source whose rates an answer at some revision uses. */
export interface RateSource {
  readonly slug: string;
  readonly base: { readonly id: number; readonly iso: string };
  /** Newest revision of the source's rates at that point; "0" where it never had one. */
  readonly revision: string;
}

/**
 * Chooses the source of exchange rates: the configured one, and a sample source only where no
 * other holds any rate at the revision. One source for a whole answer; sources never fill in for
 * one another.
 * @param configured slug of the source that the service was told to use
 * @param revision a revision, or null for the newest there is
 * @throws Error when there is no source of that slug
 */
export async function rateSource(
  db: Kysely<Database>,
  configured: string,
  revision: string | null,
): Promise<RateSource> {
  const { rows } = await sql<{
    slug: string;
    isSample: boolean;
    holds: boolean;
    baseId: number;
    baseIso: string;
    revision: string;
  }>`
    select s.slug, s.is_sample as "isSample", c.id as "baseId", c.iso as "baseIso",
      exists (select from fx_rate_at(at.revision) as r where r.source = s.slug) as holds,
      coalesce((select n.revision from revision_scope as n
        where n.scope = 'fx:' || s.slug and n.revision <= at.revision
        order by n.revision desc limit 1), 0) as revision
    from fx_source as s
      join currency as c on c.id = s.base_currency_id
      cross join (select coalesce(${revision}::bigint, max(number), 0) as revision
        from revision) as at
    order by s.slug`.execute(db);
  const wanted = rows.find((each) => each.slug === configured);
  if (!wanted) throw new Error(`there is no source of exchange rates named ${configured}`);
  const hasReal = rows.some((each) => each.holds && !each.isSample);
  const sample = rows.find((each) => each.holds && each.isSample);
  const { slug, baseId, baseIso, revision: newest } = hasReal ? wanted : (sample ?? wanted);
  return { slug, base: { id: baseId, iso: baseIso }, revision: newest };
}

async function loadRates(db: Kysely<Database>, source: RateSource): Promise<RateTable> {
  // One row for each currency: hundreds of thousands of small rows would cost far more to read.
  const { rows } = await sql<{ id: number; iso: string; days: string; rates: string }>`
    select c.id, c.iso,
      string_agg((r.date - date '2000-01-01')::text, ',' order by r.date) as days,
      string_agg(r.rate::text, ',' order by r.date) as rates
    from fx_rate_at(${source.revision}::bigint) as r
      join currency as c on c.id = r.currency_id
    where r.source = ${source.slug} and r.currency_id <> ${source.base.id}
    group by c.id, c.iso`.execute(db);
  const currencies = new Map<number, CurrencyRates>(
    rows.map((each) => [each.id, currencyRates(each.iso, each.days, each.rates)]),
  );
  return { source: source.slug, base: source.base, currencies };
}

/** The rates of a source at its revision; what was known at a revision never changes. */
export type RatesReader = (db: Kysely<Database>, source: RateSource) => Promise<RateTable>;

/**
 * A reader that reads each state of each source once and keeps the last ones used. `keep` bounds
 * how many; the whole ECB history is some 4 MB.
 */
export function ratesReader(keep: number): RatesReader {
  const kept = new Map<string, Promise<RateTable>>();
  return (db, source) => {
    const key = `${source.slug}:${source.revision}`;
    const found = kept.get(key);
    const table = found ?? loadRates(db, source);
    // Taken out and put back, the map is in the order of use.
    kept.delete(key);
    kept.set(key, table);
    if (!found) {
      // A failed read must not be remembered.
      table.catch(() => {
        if (kept.get(key) === table) kept.delete(key);
      });
    }
    for (const oldest of kept.keys()) {
      if (kept.size <= keep) break;
      kept.delete(oldest);
    }
    return table;
  };
}
