import { exactText } from '../../calculation/fraction.ts';
import type { UnitProduct } from '../../calculation/unit.ts';
import type { Rational } from '../../conversion/rational.ts';
import { BY_RULE, roundedText } from '../../conversion/rounding.ts';

/** Why a result is not final, by code: the status that the reason leads to. */
const REASONS = {
  calendar_unknown: 'unverified',
  no_sessions: 'unverified',
  period_not_over: 'provisional',
  sessions_not_published: 'provisional',
  rates_not_published: 'provisional',
  series_begins_later: 'provisional',
  side_missing: 'provisional',
  rate_missing: 'provisional',
} as const;

export type Status = 'final' | 'unverified' | 'provisional';

export interface Reason {
  readonly code: keyof typeof REASONS;
  /** Name of the input. */
  readonly input: string;
  readonly detail: string;
}

/** The status that some reasons lead to: a provisional one outweighs an unverified one. */
export function statusOf(reasons: readonly Reason[]): Status {
  const found = new Set(reasons.map(({ code }) => REASONS[code]));
  if (found.has('provisional')) return 'provisional';
  return found.has('unverified') ? 'unverified' : 'final';
}

declare global {
  interface JSON {
    /** A value that is written as its text, which must be a JSON number here. */
    rawJSON(text: string): object;
  }
}

/** A number of an answer, as decimal text: JSON has it as a number or as a text. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** The number with all its digits. */
  toJSON(): object {
    return JSON.rawJSON(this.text);
  }
}

/** The value of an input for one anchor. */
export interface InputResult {
  readonly name: string;
  /** In lowest terms; null if it cannot be computed, which `reasons` explain. */
  readonly value: Rational | null;
  readonly unit: UnitProduct;
  /** Number of sessions that were used; null for a number of the caller. */
  readonly observations: number | null;
  readonly reasons: readonly Reason[];
  /** The members of the receipt, without those of the value. */
  readonly receipt: () => Readonly<Record<string, unknown>>;
}

/** A number rounded by the rule of conversions. */
export const shownNumber = (value: Rational | null): NumberText | null =>
  value && new NumberText(roundedText(value, BY_RULE));

/** An exact number as text. */
export const shownExact = (value: Rational | null): string | null => value && exactText(value);

/** Most days that a reason lists. */
const DAYS_LISTED = 10;

/** Days for a sentence: the first ones, and the number of the others. */
export function listedDays(days: readonly string[]): string {
  const more = days.length - DAYS_LISTED;
  return `${days.slice(0, DAYS_LISTED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
