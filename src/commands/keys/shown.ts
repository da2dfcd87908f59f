import { userInfo } from 'node:os';
import type { KeyInfo } from '../../auth/key-info.ts';
import type { KeyLimits } from '../../auth/key-row.ts';
import type { NewKeyInfo } from '../../auth/keys.ts';
import { printJson, printLines, timeText } from '../output.ts';

/** Who is at the command line, for the audit table. */
export function actor(): string {
  try {
    return userInfo().username;
  } catch {
    // An account without an entry in the list of users, as in some containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

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

/** When something of a key happens, in words. */
export const whenText = (instant: string | null): string =>
  instant === null ? 'never' : timeText(instant);

/** Prints all that may be shown of a key. */
export function printKey(key: KeyInfo): void {
  printLines(
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
  );
}

/** Prints a key that was just made, with its text. */
export function printMade(made: NewKeyInfo, asJson: boolean): void {
  if (asJson) {
    printJson(made);
    return;
  }
  printKey(made);
  printLines('', made.key, '', 'The key is shown this once; the database keeps only its digest.');
}
