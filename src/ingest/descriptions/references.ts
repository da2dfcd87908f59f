import { sql } from 'kysely';
import { matchKey } from '../../catalog/match-key.ts';
import {
  type PayableReference,
  REFERENCE_SIDES,
  REFERENCE_STATISTICS,
} from '../../catalog/payable-reference.ts';
import { DATE_MIN, isDay } from '../parsing/dates.ts';
import type { PriceRecord } from '../records/source-record.ts';
import type { ReferencedPrice, Trx } from './known-names.ts';

/** Most references of one payable. */
const REFERENCES_MAX = 100;
const NUMBER_ALLOWED = `A payable has 1 to ${REFERENCES_MAX} references`;

/** The constraint of points has the same bound. */
const DAY_MAX = '2199-12-31';

const MEMBERS = ['code', 'side', 'statistic', 'element', 'validFrom'];

/** The references that a description states. */
interface StatedReferences {
  /** True if they replace all that are stored, else only that of the same day. */
  readonly isWhole: boolean;
  readonly references: readonly PayableReference[];
}

/** A description of references that cannot be read. The message says what it should be. */
export class ReferencesError extends Error {}

const isOneOf = <T extends string>(words: readonly T[], value: unknown): value is T =>
  (words as readonly unknown[]).includes(value);

function memberOf<T extends string>(members: object, name: string, words: readonly T[]): T {
  const value = (members as Readonly<Record<string, unknown>>)[name] ?? words[0];
  if (isOneOf(words, value)) return value;
  throw new ReferencesError(`The ${name} of a reference is ${words.join(' or ')}`);
}

/** A side without a statement is the mid, and a statistic that of a session. */
const SIDES = ['mid', ...REFERENCE_SIDES.filter((side) => side !== 'mid')] as const;

function referenceOf(item: unknown): PayableReference {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    throw new ReferencesError('A reference is an object with code, element and validFrom');
  }
  const unknown = Object.keys(item).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    throw new ReferencesError(`A reference has the members ${MEMBERS.join(', ')} only`);
  }
  const { code, element, validFrom } = item as Readonly<Record<string, unknown>>;
  if (typeof code !== 'string') throw new ReferencesError('A reference needs the code of a price');
  if (typeof element !== 'string' || !/^[A-Z][A-Za-z0-9]{0,15}$/.test(element)) {
    throw new ReferencesError('A reference needs an element, such as Ni, of at most 16 characters');
  }
  const isRealDay = typeof validFrom === 'string' && isDay(validFrom);
  if (!isRealDay || validFrom < DATE_MIN || validFrom > DAY_MAX) {
    throw new ReferencesError('A reference needs validFrom: a real day, written YYYY-MM-DD');
  }
  const side = memberOf(item, 'side', SIDES);
  const statistic = memberOf(item, 'statistic', REFERENCE_STATISTICS);
  return { code, side, statistic, element, validFrom };
}

/**
 * Reads the references that a description states: one, or the list of all.
 * @param json one object, which is added to the stored ones, or a list, which replaces them
 * @throws ReferencesError
 */
export function statedReferences(json: string): StatedReferences {
  let stated: unknown;
  try {
    stated = JSON.parse(json);
  } catch {
    throw new ReferencesError('Expected a JSON object, or an array of objects');
  }
  const isWhole = Array.isArray(stated);
  const items: readonly unknown[] = Array.isArray(stated) ? stated : [stated];
  if (items.length === 0 || items.length > REFERENCES_MAX) {
    throw new ReferencesError(NUMBER_ALLOWED);
  }
  const references = items.map(referenceOf);
  if (new Set(references.map(({ validFrom }) => validFrom)).size < references.length) {
    throw new ReferencesError('Two references have the same validFrom');
  }
  return { isWhole, references };
}

/** The references after a description, in the order of their days. @throws ReferencesError */
export function mergedReferences(
  stored: readonly PayableReference[] | null,
  { isWhole, references }: StatedReferences,
): readonly PayableReference[] {
  const days = new Set(references.map(({ validFrom }) => validFrom));
  const kept = isWhole ? [] : (stored ?? []).filter(({ validFrom }) => !days.has(validFrom));
  if (kept.length + references.length > REFERENCES_MAX) throw new ReferencesError(NUMBER_ALLOWED);
  return [...kept, ...references].sort((a, b) => (a.validFrom < b.validFrom ? -1 : 1));
}

/** References as JSON text, so that equal references are equal texts; null without any. */
export const referencesText = (references: readonly PayableReference[] | null): string | null =>
  references &&
  JSON.stringify(
    references.map(({ code, side, statistic, element, validFrom }) => {
      return { code, side, statistic, element, validFrom };
    }),
  );

/** The codes that the references of descriptions name. */
function namedCodes(records: Iterable<PriceRecord>): string[] {
  const codes: string[] = [];
  for (const { attributes } of records) {
    const { reference } = attributes;
    if (typeof reference !== 'string') continue;
    try {
      codes.push(...statedReferences(reference).references.map(({ code }) => code));
    } catch (error) {
      // The reader of the description reports it.
      if (!(error instanceof ReferencesError)) throw error;
    }
  }
  return codes;
}

/** Reads the stored prices that descriptions refer to, by code key. */
export async function referencedPrices(
  trx: Trx,
  records: Iterable<PriceRecord>,
): Promise<Map<string, ReferencedPrice>> {
  const keys = namedCodes(records).map(matchKey);
  if (keys.length === 0) return new Map();
  const { rows } = await sql<{ key: string; code: string; isPayable: boolean }>`
    select code_key as key, code, price_type = 'payable' as "isPayable" from price
    where code_key = any(${keys}::text[])`.execute(trx);
  return new Map(rows.map(({ key, ...price }) => [key, price]));
}

/** Adds a price that the load itself creates to those that references may name. */
export function addReferenced(
  prices: Map<string, ReferencedPrice>,
  { code, attributes }: PriceRecord,
): void {
  const isPayable = matchKey(attributes['priceType'] ?? '') === 'payable';
  prices.set(matchKey(code), { code, isPayable });
}
