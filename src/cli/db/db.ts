import { contentHash, type PartHash } from '../../db/content-hash.ts';
import { renewEpoch } from '../../db/revisions.ts';
import { seed } from '../../db/seed/seed.ts';
import { UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { addExport, addImport } from '../archive.ts';
import { command, json, option } from '../command.ts';
import { withDatabase } from '../database.ts';
import { countText, printLines, printTable } from '../output.ts';
import { addMigrate } from './migrate.ts';
import { addRoles } from './roles.ts';
import { addVerify } from './verify.ts';

/*
 * The commands of `db`: migrations, accounts, seeds, and the checks of stored data.
 */

function printCounts(what: string, counts: object): void {
  const parts = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  printLines(`${what}: ${parts.join(' · ')}`);
}

const addSeed = command({
  name: 'seed',
  summary: 'load reference and sample data',
  description:
    'Adds missing reference data and sample prices. Existing data stays unchanged, including ' +
    'edited names.',
  options: [option('--reference', 'only the reference data: for production'), json()],
  help: `\nExample:\n  ${PROGRAM} db seed --reference`,
  async run({ reference }: { reference?: true }) {
    const report = await withDatabase(({ client, progress }) =>
      seed(client, {
        reference: reference === true,
        onProgress: (done, total, what) => progress.update(`${what}: ${done} of ${total}`),
      }),
    );
    return {
      data: report,
      print() {
        printCounts('reference', report.reference);
        if (report.sample) printCounts('sample', report.sample);
      },
    };
  },
});

function printHashes(hash: string, parts: readonly PartHash[]): void {
  const sum = (counts: readonly (number | null)[]): number =>
    counts.reduce<number>((total, each) => total + (each ?? 0), 0);
  const all: PartHash = {
    part: 'all',
    prices: sum(parts.map(({ prices }) => prices)),
    values: sum(parts.map(({ values }) => values)),
    hash,
  };
  printTable([...parts, all], {
    part: ({ part }) => part,
    prices: ({ prices }) => (prices === null ? null : countText(prices)),
    values: ({ values }) => countText(values),
    'sha-256': (each) => each.hash,
  });
}

const addHash = command({
  name: 'hash',
  summary: 'print a hash of the current data',
  description:
    'Prints one SHA-256 of all current data, and one for each market and source of rates. ' +
    'Nothing is written.',
  options: [json()],
  help: `
Databases with the same reference data, prices, values and rates have the same hash, whatever the
order of the loads. History, revisions, loads and times are not included.

Examples:
  ${PROGRAM} db hash
  ${PROGRAM} db hash --json > before.json`,
  async run() {
    const found = await withDatabase(({ client, signal }) => contentHash(client, signal));
    return { data: found, print: () => printHashes(found.hash, found.parts) };
  },
});

const addRenewEpoch = command({
  name: 'renew-epoch',
  summary: 'invalidate old revisions after a restore',
  description:
    'Renews the epoch, the prefix of every revision. Run it after a restore or a promotion of a ' +
    'standby, because revision numbers may be repeated with other data.',
  options: [option('--yes', 'confirm that revisions of clients become unknown'), json()],
  help: `
The service then rejects earlier revisions and feed positions with unknown_revision and earlier
cursors with invalid_cursor, and earlier ETags no longer match. Run it before the service uses the
restored database. It needs the account that owns the tables.

Example:
  ${PROGRAM} db renew-epoch --yes`,
  async run({ yes }: { yes?: true }) {
    if (!yes) {
      throw new UsageError(
        'revisions, cursors and feed positions of clients become unknown; add --yes to confirm',
      );
    }
    const renewed = await withDatabase(({ db }) => renewEpoch(db));
    const { before, after, revision } = renewed;
    const text = `The epoch was ${before} and is ${after}; the newest revision is ${revision}.`;
    return { data: renewed, print: () => printLines(text) };
  },
});

/** The commands for the database as a whole. */
export const DATABASE_COMMANDS = [
  addMigrate,
  addSeed,
  addRoles,
  addHash,
  addVerify,
  addRenewEpoch,
  addExport,
  addImport,
];
