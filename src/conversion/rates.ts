import { type Kysely, sql } from 'kysely';
import { commitIdOf, numberIn, numberOf, requireCommit } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { keptAt } from '../db/shared-work.ts';
import { type CurrencyRates, currencyRates, type RateTable } from './rate-table.ts';

/** The source whose rates an answer at some revision uses. */
export interface RateSource {
  readonly slug: string;
  /** The currency that it quotes against; null where nothing is known of the source. */
  readonly base: { readonly id: number; readonly iso: string } | null;
  /** Newest revision of the source's rates at that point; "0" where it never had one. */
  readonly revision: string;
  /** The scopes whose revisions the choice and the rates depend on, `fx:<source>`. */
  readonly scopes: readonly string[];
}

/** A source as it is at some revision. */
interface SourceState {
  readonly slug: string;
  readonly isSample: boolean;
  /** Whether it holds any rate. */
  readonly holds: boolean;
  readonly baseId: number;
  readonly baseIso: string;
  /** Newest revision of its rates; "0" where it never had one. */
  readonly revision: string;
}

/** Every source at a revision; null is the newest there is. */
async function sourcesAt(
  db: Kysely<Database>,
  revision: string | null,
): Promise<readonly SourceState[]> {
  // A source without any revision holds nothing: its rates are not looked for.
  const { rows } = await sql<SourceState>`
    select s.slug, s.is_sample as "isSample", c.id as "baseId", c.iso as "baseIso",
      concat_ws('.', coalesce(newest.revision, 0), newest.commit_id) as revision,
      newest.revision is not null and
        exists (select from fx_rate_at(newest.revision) as r where r.source = s.slug) as holds
    from fx_source as s
      cross join (select coalesce(${revision && numberOf(revision)}::bigint, max(number), 0)
        as revision from revision) as at
      join lateral currency_at(at.revision) as c on c.id = s.base_currency_id
      left join lateral (select n.revision, r.commit_id from revision_scope as n
          join revision as r on r.number = n.revision
        where n.scope = 'fx:' || s.slug and n.revision <= at.revision
        order by n.revision desc limit 1) as newest on true
    where require_commit(at.revision, ${revision && commitIdOf(revision)})
    order by s.slug`.execute(db);
  return rows;
}

/**
 * Chooses the source of exchange rates: the configured one, and a sample source only where no
 * other holds any rate at the revision. One source for a whole answer; sources never fill in for
 * one another. A configured source that does not exist is one without rates.
 * @param configured slug of the source that the service was told to use
 * @param revision a revision, or null for the newest there is
 */
export async function rateSource(
  db: Kysely<Database>,
  configured: string,
  revision: string | null,
): Promise<RateSource> {
  const all = await sourcesAt(db, revision);
  const wanted = all.find((each) => each.slug === configured);
  const hasReal = all.some((each) => each.holds && !each.isSample);
  const samples = all.filter((each) => each.holds && each.isSample);
  const sample = samples.find((each) => each === wanted) ?? samples[0];
  const real = wanted?.isSample ? undefined : wanted;
  const chosen = hasReal ? real : (sample ?? wanted);
  // Rates of its own settle it; without them the choice depends on what every other one holds.
  const scopes = (real?.holds ? [real] : all).map((each) => `fx:${each.slug}`);
  if (!chosen) return { slug: configured, base: null, revision: '0', scopes };
  const { slug, baseId, baseIso } = chosen;
  return { slug, base: { id: baseId, iso: baseIso }, revision: chosen.revision, scopes };
}

async function loadRates(
  db: Kysely<Database>,
  { slug, revision, base }: RateSource,
): Promise<RateTable | null> {
  if (base === null) return null;
  // One row for each currency: hundreds of thousands of small rows would cost far more to read.
  const { rows } = await sql<{ id: number; iso: string; days: string; rates: string }>`
    select c.id, c.iso,
      string_agg((r.date - date '2000-01-01')::text, ',' order by r.date) as days,
      string_agg(r.rate::text, ',' order by r.date) as rates
    from fx_rate_at(${numberIn(revision)}) as r
      join currency_at(${numberIn(revision)}) as c on c.id = r.currency_id
    where r.source = ${slug} and r.currency_id <> ${base.id} and ${requireCommit(revision)}
    group by c.id, c.iso`.execute(db);
  const currencies = new Map<number, CurrencyRates>(
    rows.map((each) => [each.id, currencyRates(each.iso, each.days, each.rates)]),
  );
  return { source: slug, base, currencies };
}

/**
 * The rates of a source at its revision, null of a source that does not exist; what was known at a
 * revision never changes.
 */
export type RatesReader = (
  db: Kysely<Database>,
  epoch: string,
  source: RateSource,
) => Promise<RateTable | null>;

/**
 * A reader that reads each state of each source once and keeps the last ones used. `keep` bounds
 * how many; the whole ECB history is some 4 MB.
 */
export const ratesReader = (keep: number): RatesReader =>
  keptAt(
    keep,
    // A source that does not exist yet has no base.
    (_db, epoch, { slug, base, revision }) => `${slug}:${base?.id}:${epoch}.${revision}`,
    (db, _epoch, source) => loadRates(db, source),
  );
