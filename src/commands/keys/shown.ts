import type { KeyInfo } from '../../auth/key-info.ts';
import type { KeyLimits } from '../../auth/key-row.ts';
import type { NewKeyInfo } from '../../auth/keys.ts';
import type { Answer } from '../command.ts';
import { printLines, timeText } from '../output.ts';

function limitsText(limits: KeyLimits | null): string {
  if (limits === null) return 'those of the service';
  const { perMinute, burst, concurrent } = limits;
  const parts: string[] = [];
  if (perMinute !== null) {
    parts.push(perMinute === 0 ? 'any rate' : `${perMinute}/min, burst ${burst}`);
  }
  if (concurrent !== null) {
    parts.push(concurrent === 0 ? 'any number at a time' : `${concurrent} at a time`);
  }
  return parts.join(', ');
}

/** Of the limits of its own; `/v3/me` has null for what is not limited, and so have these. */
function limitsData({ perMinute, burst, concurrent }: KeyLimits) {
  const rate = { perMinute: perMinute || null, burst: perMinute ? burst : null };
  return {
    ...(perMinute === null ? {} : rate),
    ...(concurrent === null ? {} : { concurrent: concurrent || null }),
  };
}

/**
 * A key for a program. Its limits are null where it has none of its own; one that is the service's
 * is left out, as null says that nothing limits it.
 */
export const dataOf = (key: KeyInfo) => ({ ...key, limits: key.limits && limitsData(key.limits) });

/** When something of a key happens, in words. */
export const whenText = (instant: string | null): string =>
  instant === null ? 'never' : timeText(instant);

/** All that may be shown of a key, a line for each fact. */
function linesOf(key: KeyInfo): string[] {
  return [
    `id       ${key.id}`,
    `name     ${key.name}`,
    `owner    ${key.owner ?? '–'}`,
    `scopes   ${key.scopes.join(' ')}`,
    `limits   ${limitsText(key.limits)}`,
    `status   ${key.status}`,
    `created  ${timeText(key.createdAt)}`,
    `expires  ${whenText(key.expiresAt)}`,
    `used     ${whenText(key.lastUsedAt)}`,
    ...(key.replaces ? [`replaces ${key.replaces}`] : []),
    ...(key.replacedBy ? [`replaced by ${key.replacedBy}`] : []),
    ...(key.revokedAt === null
      ? []
      : [`revoked  ${timeText(key.revokedAt)} (${key.revokedReason ?? 'no reason'})`]),
  ];
}

const SHOWN_ONCE = 'The key is shown this once; the database keeps only its digest.';

/** The answer of a command about one key; one that was just made is printed with its text. */
export function answerOf(key: KeyInfo | NewKeyInfo): Answer {
  const secret = 'key' in key ? ['', key.key, '', SHOWN_ONCE] : [];
  return { data: dataOf(key), print: () => printLines(...linesOf(key), ...secret) };
}
