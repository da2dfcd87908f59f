/** One choice of a header such as Accept: what it names, in lower case, and its weight. */
interface Choice {
  readonly name: string;
  /** 0 to 1; 0 refuses. */
  readonly weight: number;
}

/** Choices that are read of one header; nobody needs more. */
const CHOICES_MAX = 64;

/** The parameter that makes another media type of one: rows are JSON with a profile (RFC 6906). */
const PROFILE = /^\s*profile="?rows"?\s*$/;

const named = (name: string, parameters: readonly string[]): string =>
  parameters.some((each) => PROFILE.test(each)) ? `${name};profile=rows` : name;

/** The choices of a header such as `gzip, br;q=0.5` (RFC 9110, section 12.4.2). */
function choicesOf(header: string): Choice[] {
  return header
    .split(',')
    .slice(0, CHOICES_MAX)
    .map((part) => {
      const [name = '', ...parameters] = part.trim().toLowerCase().split(';');
      const quality = parameters.map((each) => /^\s*q=([\d.]+)\s*$/.exec(each)?.[1]).find(Boolean);
      return {
        name: named(name.trim(), parameters),
        weight: quality === undefined ? 1 : Number(quality),
      };
    });
}

/** How much a type is wanted, and how exactly it was named: 0 by its own name, 2 as one of all. */
interface Wanted {
  readonly weight: number;
  readonly rank: number;
}

function wantedOf(choices: readonly Choice[], type: string): Wanted {
  const [group] = type.split('/', 1);
  // A type with a profile is sent to whoever names it, and to nobody else.
  const ranges = type.includes(';') ? [type] : [type, `${group}/*`, '*/*'];
  let best: Wanted = { weight: 0, rank: ranges.length };
  for (const { name, weight } of choices) {
    const rank = ranges.indexOf(name);
    // The most specific range counts, whatever the others say.
    if (rank !== -1 && rank <= best.rank) best = { weight, rank };
  }
  return best;
}

/**
 * The media type that a client wants most of those offered: by weight, then by how exactly it was
 * named, then by the order of the offer. Undefined where it takes none of them.
 * @param accept the header Accept; a client without one takes anything
 */
export function preferredType<T extends string>(
  accept: string | undefined,
  offered: readonly T[],
): T | undefined {
  if (accept === undefined || accept.trim() === '') return offered[0];
  const choices = choicesOf(accept);
  const wanted = offered.map((type) => ({ type, ...wantedOf(choices, type) }));
  const [first] = wanted
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.rank - b.rank);
  return first?.type;
}

/** The content codings that answers can have, the one that is the best bargain first. */
export const CODINGS = ['zstd', 'br', 'gzip'] as const;

export type Coding = (typeof CODINGS)[number];

/** The content coding that a client wants. */
export interface WantedCoding {
  /** Null for a plain answer. */
  readonly coding: Coding | null;
  /** True if it would take a plain answer, too. */
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
