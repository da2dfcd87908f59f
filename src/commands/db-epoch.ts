import type { Command } from 'commander';
import { renewEpoch } from '../db/epoch.ts';
import { withDatabase } from './database.ts';
import { UsageError } from './failure.ts';
import { printJson, printLines } from './output.ts';

async function run({ yes, json }: { yes?: true; json?: true }): Promise<void> {
  if (!yes) {
    throw new UsageError(
      'revisions, cursors and positions of the feed that clients hold become unknown; add --yes ' +
        'to confirm',
    );
  }
  const renewed = await withDatabase({ schema: true }, ({ db }) => renewEpoch(db));
  if (json) return printJson(renewed);
  const { before, after, revision } = renewed;
  printLines(`The epoch was ${before} and is ${after}; the newest revision is ${revision}.`);
}

/** Adds `db renew-epoch`. */
export function addEpoch(db: Command): void {
  db.command('renew-epoch')
    .summary('make old revisions unknown, after a restore')
    .description(
      'Renews the epoch that stands before every revision: after a backup was restored or a ' +
        'standby promoted, for its revisions may come again with other data.',
    )
    .option('--yes', 'confirm that what clients hold becomes unknown')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
From then on the service rejects the revisions and feed positions that clients hold with
unknown_revision and their cursors with invalid_cursor, and their ETags no longer match. Run it
before the service uses the restored database. It needs the account that owns the tables.

Example:
  npm run --silent prices -- db renew-epoch --yes`,
    )
    .action(run);
}
