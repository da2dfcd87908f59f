import type { Command } from 'commander';
import { contentHash, type PartHash } from '../db/content-hash.ts';
import { withDatabase } from './database.ts';
import { countText, printJson, printTable } from './output.ts';

async function hash({ json }: { json?: true }): Promise<void> {
  const found = await withDatabase({ schema: true }, (client, _config, signal) =>
    contentHash(client, signal),
  );
  if (json) return printJson(found);
  const sum = (counts: readonly (number | null)[]): number =>
    counts.reduce<number>((total, each) => total + (each ?? 0), 0);
  const all: PartHash = {
    part: 'all',
    prices: sum(found.parts.map(({ prices }) => prices)),
    values: sum(found.parts.map(({ values }) => values)),
    hash: found.hash,
  };
  printTable([...found.parts, all], {
    part: ({ part }) => part,
    prices: ({ prices }) => (prices === null ? null : countText(prices)),
    values: ({ values }) => countText(values),
    'sha-256': (each) => each.hash,
  });
}

/** Adds `db hash`. */
export function addHash(db: Command): void {
  db.command('hash')
    .summary('print a hash of the current data')
    .description(
      'Prints one SHA-256 of all current data, and one for each market and source of rates: what ' +
        'readers see, whatever the way that led to it. Nothing is written.',
    )
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
Two databases that show the same reference data, prices, values and rates have the same hash, in
whatever order they were loaded. History, revisions, loads and times are no part of it.

Examples:
  npm run --silent prices -- db hash
  npm run --silent prices -- db hash --json > before.json`,
    )
    .action(hash);
}
