import { marketOf } from '../../catalog/markets.ts';
import { decimalOf, decimalText } from '../../conversion/decimal.ts';
import { instantOf } from '../../db/instant.ts';
import { commitIdOf, wireText } from '../../db/revisions.ts';
import type { Slice } from '../../turns.ts';
import { attributesOf, ownTerms } from '../record.ts';
import type { References } from '../references.ts';
import { lengthOf, type Stretch } from './segments.ts';
import type { ChangedPoint, ChangedPrice, PointValue, PriceState } from './values.ts';

/** The reference data at a revision of theirs. */
type ReferencesAt = (reference: string) => Promise<References>;

/** A JSON number with every digit that is stored. */
const numberText = (text: string | null): string =>
  text === null ? 'null' : decimalText(decimalOf(text));

function pointText(value: PointValue | null): string {
  if (value === null) return 'null';
  const [low, mid, high] = [value.low, value.mid, value.high].map(numberText);
  const publishedAt = instantOf(value.publishedAt);
  return (
    `{"low":${low},"mid":${mid},"high":${high},` +
    `"publishedAt":"${publishedAt}","corrections":${value.corrections}}`
  );
}

async function priceText(
  slug: string,
  state: PriceState | null,
  at: ReferencesAt,
): Promise<string> {
  if (state === null) return 'null';
  const market = marketOf(slug);
  if (!market) throw new Error(`the catalog has no market ${slug}`);
  const references = await at(state.reference);
  const terms = ownTerms(state.price, references);
  return JSON.stringify(attributesOf(market, state.price, references, terms));
}

/** What happened, by what was there before and is there after. */
function operationOf(
  { before, after }: { readonly before: unknown; readonly after: unknown },
  added: string,
  changed: string,
): string {
  if (after === null) return 'withdrawn';
  return before === null ? added : changed;
}

/** The members of the changes of a stretch that are the same for all. */
function frameOf(stretch: Stretch, epoch: string) {
  const { market, code, revision, recordedAt } = stretch;
  const id = commitIdOf(revision);
  const seqOf = (index: number): string => `${stretch.number + BigInt(index)}.${id}`;
  const names = `"market":${JSON.stringify(market)},"code":${JSON.stringify(code)}`;
  return (index: number, operation: string, date: string | null, values: string): string =>
    `{"seq":"${wireText(epoch, seqOf(index))}",` +
    `"recordedAt":"${recordedAt}","operation":"${operation}",${names},` +
    `"date":${JSON.stringify(date)},"revision":"${wireText(epoch, revision)}",${values}}`;
}

/**
 * The changes of a stretch, each as the text of a JSON object: that of the price itself first,
 * then its points by date.
 */
export async function changeTexts(
  epoch: string,
  stretch: Stretch,
  price: ChangedPrice | undefined,
  points: readonly ChangedPoint[],
  at: ReferencesAt,
  slice: Slice,
): Promise<string[]> {
  const frame = frameOf(stretch, epoch);
  const texts: string[] = [];
  if (price) {
    const before = await priceText(stretch.market, price.before, at);
    const after = await priceText(stretch.market, price.after, at);
    const operation = operationOf(price, 'price-added', 'price-changed');
    texts.push(frame(0, operation, null, `"before":${before},"after":${after}`));
  }
  for (const point of points) {
    if (slice.isOver) await slice.pass();
    const values = `"before":${pointText(point.before)},"after":${pointText(point.after)}`;
    const operation = operationOf(point, 'published', 'corrected');
    texts.push(frame(texts.length, operation, point.date, values));
  }
  // A number that stands for nothing would be a hole for ever.
  if (texts.length !== lengthOf(stretch)) {
    throw new Error(`revision ${stretch.revision} has not the changes that were numbered`);
  }
  return texts;
}
