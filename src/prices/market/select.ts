import type { Reads } from '../../db/reads.ts';
import type { DataRevision } from '../../db/revisions.ts';
import { Problem } from '../../errors.ts';
import { Semaphore } from '../../std/semaphore.ts';
import { isConverting } from '../plan/options.ts';
import type { Plan } from '../plan/plan.ts';
import type { MarketPricesReader } from './market-prices.ts';
import { ALL_CODES, type CodeRange, type SelectedPrice, selectionOf } from './query.ts';
import type { VocabularyReader } from './vocabulary.ts';

/** Most large reads that wait: each holds an admission slot. */
export const LARGE_WAITING_MAX = 16;

/**
 * Limits concurrent reads of the database: the driver parses megabytes of a large result without a
 * pause. Further reads wait in FIFO order until their requests end.
 */
export class ReadLimit {
  readonly #semaphore: Semaphore;

  constructor(concurrency: number, waitingMax: number) {
    this.#semaphore = new Semaphore(concurrency, { waitingMax, waitMs: Number.POSITIVE_INFINITY });
  }

  /**
   * @throws Problem `overloaded` if too many reads wait; the reason of the signal; errors of `read`
   */
  async run<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const release = await this.#semaphore.acquire({ signal });
    if (release === null) {
      throw new Problem(
        'overloaded',
        'Too many large reads wait; request fewer records at once, or try again shortly',
      );
    }
    try {
      return await read();
    } finally {
      release();
    }
  }
}

/** A selection of more prices is large. */
const LARGE = 2_000;

/**
 * The codes that an answer needs. One price more than the page decides whether another page exists.
 * With codes or a conversion, the warnings depend on all prices.
 */
export function codeRangeOf({ codes, options, page: { after, limit } }: Plan): CodeRange {
  if (codes !== null || isConverting(options)) return ALL_CODES;
  return { after: after?.code ?? null, pricesMax: limit === null ? null : limit + 1 };
}

/** Selects the prices of a plan at a data revision. */
type Selector = (
  plan: Plan,
  data: DataRevision,
  signal: () => AbortSignal,
) => Promise<readonly SelectedPrice[]>;

/**
 * Selects prices: from a cached market, or else in the database. A query reads one page if that is
 * enough.
 */
export function sqlSelector(
  reads: Reads,
  vocabularies: VocabularyReader,
  marketPrices: MarketPricesReader,
): Selector {
  const largeReads = new ReadLimit(1, LARGE_WAITING_MAX);
  /** Markets with a large selection so far. */
  const large = new Set<string>();
  return async (plan, data, signal) => {
    const { slug } = plan.market;
    const range = codeRangeOf(plan);
    const cached = await marketPrices(plan.market, data);
    if (cached !== null) {
      const vocabulary = plan.lists.length === 0 ? null : await vocabularies(plan.market, data);
      return cached.select(plan, vocabulary, range);
    }
    const read = async (): Promise<readonly SelectedPrice[]> => {
      const prices = await selectionOf(reads.db(signal()), plan, data.revision, range).execute();
      if (prices.length > LARGE) large.add(slug);
      return prices;
    };
    const mayBeLarge = plan.codes === null && range.pricesMax === null && large.has(slug);
    return mayBeLarge ? largeReads.run(read, signal()) : read();
  };
}
