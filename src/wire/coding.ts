import { choicesOf } from './accept.ts';

/** The content codings that answers can have, the one that is the best bargain first. */
export const CODINGS = ['zstd', 'br', 'gzip'] as const;

export type Coding = (typeof CODINGS)[number];

/** What a client wants its answer coded as. */
export interface WantedCoding {
  /** Null where it wants it as it is. */
  readonly coding: Coding | null;
  /** Whether it would take it as it is, too. */
  readonly takesPlain: boolean;
}

/** Below the weight of everything that is named: what is not named is taken, and not asked for. */
const UNNAMED = 1e-6;

/**
 * The coding that a client wants most, by weight and then by the order of the offer (RFC 9110,
 * section 12.5.3); null where it takes none of them and refuses the plain answer as well. A star
 * stands for gzip alone: many who send it have never heard of the others.
 * @param accept the header Accept-Encoding; a client without one gets the plain answer
 */
export function wantedCoding(
  accept: string | undefined,
  offered: readonly Coding[] = CODINGS,
): WantedCoding | null {
  if (accept === undefined || accept.trim() === '') return { coding: null, takesPlain: true };
  const weights = new Map(
    choicesOf(accept).map(({ name, weight }) => [name === 'x-gzip' ? 'gzip' : name, weight]),
  );
  const star = weights.get('*');
  const weightOf = (coding: Coding): number =>
    weights.get(coding) ?? (coding === 'gzip' ? (star ?? 0) : 0);
  const plain = weights.get('identity') ?? star ?? UNNAMED;
  const takesPlain = plain > 0;
  const [best] = offered
    .map((coding) => ({ coding, weight: weightOf(coding) }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight);
  if (best && best.weight >= plain) return { coding: best.coding, takesPlain };
  return takesPlain ? { coding: null, takesPlain } : null;
}
