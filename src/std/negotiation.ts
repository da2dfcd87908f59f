/** One element of a header such as Accept. */
interface Choice {
  /** The media range or coding, in lower case. */
  readonly name: string;
  /** 0 to 1; 0 means "not acceptable". */
  readonly weight: number;
}

/** Most elements read from one header. */
const CHOICES_MAX = 64;

/** The parameter that distinguishes rows from JSON with the same media type (RFC 6906). */
const PROFILE = /^\s*profile="?rows"?\s*$/;

const named = (name: string, parameters: readonly string[]): string =>
  parameters.some((each) => PROFILE.test(each)) ? `${name};profile=rows` : name;

/** Parses a header such as `gzip, br;q=0.5` (RFC 9110, section 12.4.2). */
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

/** The weight that a header gives to a media type. */
interface Preference {
  readonly weight: number;
  /** Specificity of the matching range: 0 for the type itself, 2 for all types. */
  readonly rank: number;
}

function preferenceOf(choices: readonly Choice[], type: string): Preference {
  const [group] = type.split('/', 1);
  // A range does not match a type with a profile: only clients that name it understand it.
  const ranges = type.includes(';') ? [type] : [type, `${group}/*`, '*/*'];
  let best: Preference = { weight: 0, rank: ranges.length };
  for (const { name, weight } of choices) {
    const rank = ranges.indexOf(name);
    // The most specific range takes precedence (RFC 9110, section 12.5.1).
    if (rank !== -1 && rank <= best.rank) best = { weight, rank };
  }
  return best;
}

/**
 * The available media type that a client prefers: by weight, then by specificity, then by the order
 * of `available`. Undefined if none is acceptable.
 * @param accept the header Accept; without it every type is acceptable
 */
export function preferredType<T extends string>(
  accept: string | undefined,
  available: readonly T[],
): T | undefined {
  if (accept === undefined || accept.trim() === '') return available[0];
  const choices = choicesOf(accept);
  const preferences = available.map((type) => ({ type, ...preferenceOf(choices, type) }));
  const [first] = preferences
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight || a.rank - b.rank);
  return first?.type;
}

/** The content codings of answers, in the order of preference of the service. */
export const CODINGS = ['zstd', 'br', 'gzip'] as const;

export type Coding = (typeof CODINGS)[number];

/** The content coding that a client prefers. */
export interface CodingPreference {
  /** Null for an answer without coding. */
  readonly coding: Coding | null;
  /** True if an answer without coding is acceptable as well. */
  readonly acceptsIdentity: boolean;
}

/** Weight of `identity` if the header does not name it: acceptable, but after all named codings. */
const UNNAMED = 1e-6;

/**
 * The coding that a client prefers, by weight and then by the order of `CODINGS` (RFC 9110,
 * section 12.5.3); null if neither a coding nor `identity` is acceptable. `*` matches gzip alone,
 * because many clients that send it cannot decode the others.
 * @param accept the header Accept-Encoding; without it the answer has no coding
 */
export function preferredCoding(accept: string | undefined): CodingPreference | null {
  if (accept === undefined || accept.trim() === '') return { coding: null, acceptsIdentity: true };
  const weights = new Map(
    choicesOf(accept).map(({ name, weight }) => [name === 'x-gzip' ? 'gzip' : name, weight]),
  );
  const star = weights.get('*');
  const weightOf = (coding: Coding): number =>
    weights.get(coding) ?? (coding === 'gzip' ? (star ?? 0) : 0);
  const identity = weights.get('identity') ?? star ?? UNNAMED;
  const acceptsIdentity = identity > 0;
  const [best] = CODINGS.map((coding) => ({ coding, weight: weightOf(coding) }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight);
  if (best && best.weight >= identity) return { coding: best.coding, acceptsIdentity };
  return acceptsIdentity ? { coding: null, acceptsIdentity } : null;
}
