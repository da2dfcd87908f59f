import type { Kysely } from 'kysely';
import type { Head } from '../../db/revisions.ts';
import type { Database } from '../../db/schema.ts';
import { Problem } from '../../errors.ts';
import { Places } from '../../std/places.ts';
import { isConverting } from '../plan/options.ts';
import type { Plan } from '../plan/plan.ts';
import { type SelectedPrice, type Stretch, selectionOf, WHOLE } from './query.ts';
import type { VocabularyReader } from './vocabulary.ts';
import { type Unmatched, unmatchedIn } from './warnings.ts';

/** Large readings that may wait; each holds a place of the gate, which has others to serve. */
export const LARGE_WAITING_MAX = 16;

/**
 * Runs readings of the database a few at a time: the driver parses megabytes of a large one without
 * a pause. The others wait in the order of their arrival, until their requests end.
 */
export class Readings {
  readonly #places: Places;

  constructor(atOnce: number, waitingMax: number) {
    this.#places = new Places(atOnce, { waitingMax, waitMs: Number.POSITIVE_INFINITY });
  }

  /**
   * @throws Problem `overloaded` where too many wait, the reason of the signal, and what `read`
   *   throws
   */
  async run<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const leave = await this.#places.enter({ signal });
    if (leave === null) {
      throw new Problem(
        'overloaded',
        'Too many large readings wait; ask for fewer records at once, or try again shortly',
      );
    }
    try {
      return await read();
    } finally {
      leave();
    }
  }
}

/** What the filters of a plan come to. */
export interface Selected {
  readonly prices: readonly SelectedPrice[];
  /** The values that match nothing. */
  readonly unmatched: readonly Unmatched[];
}

/** The database for those who need it: what is at hand is found without. */
export type Asking = () => Kysely<Database>;

/**
 * Finds the prices of a plan at the state of a head: all of them, or from those of its page to at
 * least one beyond it where nothing is told of the others.
 */
export type Selector = (
  asking: Asking,
  plan: Plan,
  head: Head,
  signal: () => AbortSignal,
) => Promise<Selected>;

/** Prices beyond which a selection is a large one. */
const LARGE = 2_000;

/**
 * The prices that an answer needs. One more than it shows tells whether there is another page; with
 * codes or a conversion it tells of all prices, whatever page of them it shows.
 */
function stretchOf({ codes, options, page: { after, limit } }: Plan): Stretch {
  if (codes !== null || isConverting(options)) return WHOLE;
  return { after: after?.code ?? null, most: limit === null ? null : limit + 1 };
}

/** Asks the database for all of it, or only for a page of it where that is enough. */
export function sqlSelector(vocabularies: VocabularyReader): Selector {
  const readings = new Readings(1, LARGE_WAITING_MAX);
  /** Markets of which a selection was a large one. */
  const large = new Set<string>();
  return async (asking, plan, head, signal) => {
    const { slug } = plan.market;
    const stretch = stretchOf(plan);
    const read = async (): Promise<Selected> => {
      const db = asking();
      const prices = await selectionOf(db, plan, head.revision, stretch).execute();
      if (prices.length > LARGE) large.add(slug);
      return { prices, unmatched: await unmatchedIn(db, vocabularies, plan, head, prices) };
    };
    const mayBeLarge = plan.codes === null && stretch.most === null && large.has(slug);
    return mayBeLarge ? readings.run(read, signal()) : read();
  };
}
