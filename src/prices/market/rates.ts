import { type Kysely, sql } from 'kysely';
import { type CurrencyRates, currencyRates, type RateTable } from '../../conversion/rate-table.ts';
import { commitIdOf, numberIn, numberOf, requireCommit } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { cachedByRevision } from '../../db/shared-work.ts';

/** The source of exchange rates of an answer. */
export interface RateSource {
  readonly slug: string;
  /** The currency that the source quotes against; null for an unknown source. */
  readonly base: { readonly id: number; readonly iso: string } | null;
  /** True for invented rates. */
  readonly isSample: boolean;
  /** The newest revision of its rates; "0" if it has none. */
  readonly revision: string;
  /** The scopes whose revisions the choice and the rates depend on, `fx:<source>`. */
  readonly scopes: readonly string[];
}

/** A source at some revision. */
interface SourceAt {
  readonly slug: string;
  readonly isSample: boolean;
  /** True if it holds any rate. */
  readonly holds: boolean;
  readonly baseId: number;
  readonly baseIso: string;
  /** The newest revision of its rates; "0" if it has none. */
  readonly revision: string;
}

/** All sources at a revision; null for the newest. */
async function sourcesAt(
  db: Kysely<Database>,
  revision: string | null,
): Promise<readonly SourceAt[]> {
  // A source without any revision holds no rate: its rates are not searched.
  const { rows } = await sql<SourceAt>`
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
 * Chooses the source of exchange rates: the configured one, or a sample source if no other source
 * has any rate at the revision. An answer uses one source; sources never complement each other. A
 * configured source that does not exist counts as one without rates.
 * @param configured slug of the configured source
 * @param revision a revision, or null for the newest
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
  // Without rates of the configured source, the choice depends on the rates of all sources.
  const scopes = (real?.holds ? [real] : all).map((each) => `fx:${each.slug}`);
  if (!chosen) return { slug: configured, base: null, isSample: false, revision: '0', scopes };
  const { slug, baseId, baseIso, isSample, revision: newest } = chosen;
  return { slug, base: { id: baseId, iso: baseIso }, isSample, revision: newest, scopes };
}

async function loadRates(
  db: Kysely<Database>,
  { slug, revision, base, isSample }: RateSource,
): Promise<RateTable | null> {
  if (base === null) return null;
  // One row per currency: hundreds of thousands of small rows would take much longer to read.
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
  return { source: slug, kind: isSample ? 'sample' : 'published', base, currencies };
}

/**
 * Reads the rates of a source at its revision, which never change. Null for a source that does not
 * exist.
 */
export type RatesReader = (
  db: Kysely<Database>,
  epoch: string,
  source: RateSource,
) => Promise<RateTable | null>;

/**
 * A reader with an LRU cache. The whole ECB history takes about 4 MB.
 * @param entries most cached rate tables
 */
export const ratesReader = (entries: number): RatesReader =>
  cachedByRevision(
    entries,
    // A source that does not exist yet has no base.
    (_db, epoch, { slug, base, revision }) => `${slug}:${base?.id}:${epoch}.${revision}`,
    (db, _epoch, source) => loadRates(db, source),
  );
