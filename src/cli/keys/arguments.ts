import { KEY_LIFETIME_DAYS } from '../../auth/keys/keys.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { UsageError } from '../../std/base-errors.ts';
import { wholeOf } from '../command.ts';

const DAY_MS = 86_400_000;
const UNITS_MS = { m: 60_000, h: 3_600_000, d: DAY_MS } as const;

export interface ExpiryOptions {
  readonly expires?: string;
  /** False with --no-expiry. */
  readonly expiry: boolean;
}

/**
 * Expiry of a key: a number of days (30, 30d), or the end of a day in UTC (2030-12-31). The default
 * is a year; null with --no-expiry.
 */
export function expiryOf({ expires, expiry }: ExpiryOptions): Date | null {
  if (!expiry) {
    if (expires !== undefined) throw new UsageError('give --expires or --no-expiry, not both');
    return null;
  }
  const text = expires ?? String(KEY_LIFETIME_DAYS);
  const days = /^([1-9]\d{0,4})d?$/.exec(text)?.[1];
  if (days !== undefined) return new Date(Date.now() + Number(days) * DAY_MS);
  const end = new Date(`${text}T23:59:59.999Z`);
  if (/^\d{4}-\d\d-\d\d$/.test(text) && end.toJSON()?.startsWith(text)) {
    if (end.getTime() > Date.now()) return end;
    throw new UsageError(`--expires: ${text} is over; name a day to come`);
  }
  throw new UsageError(
    `--expires: "${text}" is not a number of days or a day like 2030-12-31; ` +
      'a key that never ends needs --no-expiry',
  );
}

/** A span like 90d, 24h or 15m, or 0, in milliseconds. */
export function spanOf(option: string, text: string): number {
  if (text === '0') return 0;
  const [, count, unit] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? [];
  if (count === undefined)
    throw new UsageError(`${option}: "${text}" is not a span like 24h, 15m, 7d or 0`);
  return Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS];
}

export interface LimitOptions {
  readonly rate?: string;
  readonly burst?: string;
  readonly concurrency?: string;
}

/** A rate such as `600/min`, or the number alone. */
function perMinuteOf(rate: string): number {
  const [, count] = /^(\d{1,9})(?:\/min)?$/.exec(rate) ?? [];
  if (count !== undefined) return Number(count);
  throw new UsageError(`--rate: "${rate}" is not a rate like 600/min, or 0 for no limit`);
}

/** A key's own limits: `--rate 600/min`, `--burst 60`, `--concurrency 10`. */
export function limitsOf({ rate, burst, concurrency }: LimitOptions): KeyLimits | null {
  if (rate === undefined && burst !== undefined) throw new UsageError('--burst needs --rate');
  if (rate === undefined && concurrency === undefined) return null;
  const perMinute = rate === undefined ? null : perMinuteOf(rate);
  return {
    perMinute,
    // Same ratio as the default limits of the service.
    burst:
      perMinute === null
        ? null
        : burst === undefined
          ? Math.max(Math.ceil(perMinute / 10), 1)
          : wholeOf('--burst', burst),
    concurrent: concurrency === undefined ? null : wholeOf('--concurrency', concurrency, 0),
  };
}

/** Collects the values of `--scope`, which may be repeated and may hold several each. */
export const splitScopes = (text: string, before: string[] = []): string[] => [
  ...before,
  ...text.split(/[\s,]+/).filter((each) => each !== ''),
];
