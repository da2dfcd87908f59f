import type { Head } from '../../db/revisions.ts';
import type { Plan } from '../../prices/plan/plan.ts';
import { type SelectedPrice, selectIds } from '../../prices/select/query.ts';
import type { Asking, Selected } from '../../prices/select/select.ts';
import type { VocabularyReader } from '../../prices/select/vocabulary.ts';
import { type Unmatched, unmatchedIn } from '../../prices/select/warnings.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from '../store/budget.ts';
import type { Edition } from '../store/edition.ts';

/** What filters select, warnings included, in every edition in which they select the same. */
export class Selection extends Remembered {
  readonly unmatched: readonly Unmatched[];
  readonly bytes: number;
  readonly #ids: readonly number[];
  readonly #key: string;
  #of: Map<string, Selection>;
  #edition: Edition | null = null;
  #prices: readonly SelectedPrice[] = [];

  constructor(of: Map<string, Selection>, key: string, ids: readonly number[], found: Selected) {
    super();
    this.#of = of;
    this.#key = key;
    this.#ids = ids;
    this.unmatched = found.unmatched;
    const warnings = found.unmatched.length > 0 ? JSON.stringify(found.unmatched) : '';
    this.bytes = OVERHEAD_BYTES + 16 * ids.length + 2 * key.length + 4 * warnings.length;
  }

  /** The prices as an edition shows them. */
  pricesIn(edition: Edition): readonly SelectedPrice[] {
    if (this.#edition !== edition) {
      this.#prices = this.#ids.map((id) => priceIn(edition, id));
      this.#edition = edition;
    }
    return this.#prices;
  }

  /** Takes it over to an edition in which it selects the same. */
  moveTo(of: Map<string, Selection>): void {
    this.#of = of;
    // It must not hold the edition that is history now.
    this.#edition = null;
    this.#prices = [];
    of.set(this.#key, this);
  }

  forget(): void {
    this.#of.delete(this.#key);
  }
}

function priceIn(edition: Edition, id: number): SelectedPrice {
  const found = edition.prices.get(id)?.price;
  if (found) return found;
  // Only a database that was exchanged without a new epoch knows another.
  edition.forget();
  throw new Error(`the book has no price ${id}`);
}

/** The filters as a text. Values count as they were sent, because warnings show them so. */
const keyOf = ({ codes, lists }: Plan): string =>
  JSON.stringify([codes, ...lists.map(({ name, values }) => [name, values])]);

/** What a plan selects in an edition: as it is remembered, or as the database says now. */
export async function selectIn(
  asking: Asking,
  edition: Edition,
  plan: Plan,
  head: Head,
  vocabularies: VocabularyReader,
  budget: Budget,
): Promise<Selected> {
  const { selections } = edition;
  const key = keyOf(plan);
  const known = selections.get(key);
  if (known) {
    budget.use(known);
    return { prices: known.pricesIn(edition), unmatched: known.unmatched };
  }
  const db = asking();
  const ids = await selectIds(db, plan, head.revision);
  const prices = ids.map((id) => priceIn(edition, id));
  const found = { prices, unmatched: await unmatchedIn(db, vocabularies, plan, head, prices) };
  // Another market may have an unmatched code by now, which changes nothing of this edition.
  if (plan.codes !== null && found.unmatched.length > 0) return found;
  const selection = new Selection(selections, key, ids, found);
  // Of an edition that was replaced meanwhile nothing is remembered.
  if (edition.in === budget && budget.add(selection)) {
    if (edition.in === budget) selections.set(key, selection);
    else budget.remove(selection);
  }
  return found;
}
