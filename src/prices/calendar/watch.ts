import { type Kysely, sql } from 'kysely';
import type { Judgement, Late } from '../../calendar/lateness.ts';
import { MARKETS, type MarketSlug } from '../../catalog/markets.ts';
import { dataRevisionAt, type NewestRevision } from '../../db/newest-revision.ts';
import type { Database } from '../../db/schema.ts';
import { sharedRefresh } from '../../db/shared-work.ts';
import { type LateReaders, latePrices, type WatchedPrices, watchedPrices } from './late.ts';

/** Numbers of late prices of a market, by the way in which they are judged. */
interface LateCount {
  readonly market: MarketSlug;
  readonly by: Late['by'];
  readonly prices: number;
}

/** The newest day with a value, of the prices of a market with one frequency. */
interface ObservationDay {
  readonly market: MarketSlug;
  readonly frequency: string;
  /** `YYYY-MM-DD`. */
  readonly day: string;
}

/** Batches of the ledger. */
interface LoadCount {
  readonly format: string;
  readonly outcome: 'applied' | 'unchanged' | 'refused';
  readonly batches: number;
}

/** Prices and loads that are watched in the background, for metrics. */
interface Watch {
  /** Reads prices and loads again, unless nothing was committed since. Never throws. */
  refresh(): Promise<void>;
  /** Judged by the clock at each call. */
  late(): readonly LateCount[];
  observations(): readonly ObservationDay[];
  loads(): readonly LoadCount[];
}

const SLUGS = MARKETS.map(({ slug }) => slug);

/** Refused loads are no commits: the ledger is read again after this time. */
const LEDGER_MS = 30_000;

/**
 * Watches prices and loads.
 * @param newest the revision check
 * @param clock the time and the grace by which prices are late
 */
export function watchOf(
  readers: LateReaders,
  newest: () => Promise<NewestRevision>,
  clock: () => Judgement,
): Watch {
  let watched: WatchedPrices | null = null;
  let seen: NewestRevision | null = null;
  let loads: readonly LoadCount[] = [];
  let loadsReadMs = -Infinity;

  const read = async (): Promise<void> => {
    const found = await newest();
    const isSame = found === seen;
    if (!isSame) {
      watched = await watchedPrices(readers, SLUGS, dataRevisionAt(found, SLUGS));
      seen = found;
    }
    if (isSame && performance.now() - loadsReadMs < LEDGER_MS) return;
    loads = await readLoads(readers.db);
    loadsReadMs = performance.now();
  };
  return {
    refresh: sharedRefresh(read),
    late: () => (watched === null ? [] : lateCounts(watched, clock())),
    observations: () => (watched === null ? [] : observationDays(watched)),
    loads: () => loads,
  };
}

/** The numbers of late prices of each market with prices; 0 where none is late. */
function lateCounts(watched: WatchedPrices, judgement: Judgement): readonly LateCount[] {
  const counts = new Map<string, number>();
  for (const { market, late } of latePrices(watched, judgement)) {
    const key = `${market} ${late.by}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const markets = [...new Set(watched.prices.map(({ market }) => market))];
  return markets.flatMap((market) =>
    (['calendar', 'frequency'] as const).map((by) => ({
      market,
      by,
      prices: counts.get(`${market} ${by}`) ?? 0,
    })),
  );
}

function observationDays({ prices }: WatchedPrices): readonly ObservationDay[] {
  const days = new Map<string, ObservationDay>();
  for (const { market, frequency, lastDate: day } of prices) {
    if (day === null || frequency === null) continue;
    const key = `${market} ${frequency}`;
    const known = days.get(key);
    if (known === undefined || known.day < day) days.set(key, { market, frequency, day });
  }
  return [...days.values()];
}

async function readLoads(db: Kysely<Database>): Promise<readonly LoadCount[]> {
  const { rows } = await sql<LoadCount>`
    select format, case when status = 'refused' then 'refused'
        when revision is null then 'unchanged' else 'applied' end as outcome,
      count(*)::float8 as batches
    from load_batch group by 1, 2 order by 1, 2`.execute(db);
  return rows;
}
