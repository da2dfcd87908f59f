import { REMOVED_SETTINGS } from '../config/settings.ts';
import { UsageError } from '../std/base-errors.ts';

/** A command of an earlier version, or an option of one, and what to do instead. */
interface Removed {
  readonly command: readonly string[];
  readonly option?: string;
  readonly instead: string;
}

const REMOVED: readonly Removed[] = [
  {
    command: ['serve'],
    option: '--workers',
    instead: REMOVED_SETTINGS['WORKERS'] ?? '',
  },
  {
    command: ['db', 'renew-epoch'],
    option: '--if-lost-after',
    instead: 'the service knows lost commits by their commit ids; after a restore, use --yes',
  },
  {
    command: ['db', 'drill'],
    instead: 'docs/operations.md, "The restore drill", has the commands that replace it',
  },
  {
    command: ['db', 'migrate'],
    option: '--down',
    instead:
      'the previous version runs on the schema of this one, so install it and keep the schema',
  },
  {
    command: ['db', 'export'],
    option: '--format',
    instead:
      'every export is CSV, so leave the option out; docs/export.md, "Reading it elsewhere", ' +
      'has what reads it with exact decimals',
  },
];

/** Rejects a command or an option of an earlier version by name. @throws UsageError */
export function rejectRemoved(words: readonly string[]): void {
  for (const { command, option, instead } of REMOVED) {
    const isCommand = command.every((word, at) => words[at] === word);
    const isNamed = (word: string) => word === option || word.startsWith(`${option}=`);
    if (!isCommand || (option !== undefined && !words.some(isNamed))) continue;
    throw new UsageError(`${[...command, option ?? ''].join(' ').trim()} is gone: ${instead}`);
  }
}
