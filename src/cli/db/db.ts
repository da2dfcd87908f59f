import type { Command } from 'commander';
import type { Client } from '../../db/client.ts';
import { contentHash, type PartHash } from '../../db/content-hash.ts';
import { newestRevision, renewEpoch } from '../../db/revisions.ts';
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

const METRICS_TIMEOUT_MS = 2_000;
/** Metric with the greatest revision number that a node has read in an epoch. */
const HIGHEST = 'prices_revision_highest_number';

/**
 * The greatest revision number that a node has shown in an epoch, from its metrics; null if it does
 * not respond with them.
 */
async function highestShown(address: string, epoch: string): Promise<number | null> {
  try {
    const signal = AbortSignal.timeout(METRICS_TIMEOUT_MS);
    const response = await fetch(`http://${address}/metrics`, { signal });
    const text = await response.text();
    if (!response.ok || !text.includes(HIGHEST)) return null;
    const name = `${HIGHEST}{epoch="${epoch}"} `;
    const line = text.split('\n').find((each) => each.startsWith(name));
    return line === undefined ? 0 : Number(line.slice(name.length));
  } catch {
    return null;
  }
}

/**
 * True unless every node responds and none has shown a later revision. A silent node may have shown
 * one before it failed.
 */
async function isAnyLost(
  db: Client['db'],
  had: number,
  nodes: readonly string[],
): Promise<boolean> {
  const { epoch } = await newestRevision(db);
  const shown = await Promise.all(nodes.map((each) => highestShown(each, epoch)));
  return shown.length === 0 || shown.some((each) => each === null || each > had);
}

const addRenewEpoch = command({
  name: 'renew-epoch',
  summary: 'invalidate old revisions after a restore',
  description:
    'Renews the epoch, the prefix of every revision. Run it after a restore or a promotion of a ' +
    'standby, because revision numbers may be repeated with other data.',
  args: [['[metrics...]', 'with --if-lost-after: host:port of the metrics of each node']],
  options: [
    option('--yes', 'confirm that revisions of clients become unknown'),
    option(
      '--if-lost-after <number>',
      'only if a node has shown a later revision, or does not respond',
    ),
    json(),
  ],
  help: `
The service then rejects earlier revisions and feed positions with unknown_revision and earlier
cursors with invalid_cursor, and earlier ETags no longer match. Run it before the service uses the
restored database. It needs the account that owns the tables.

Examples:
  ${PROGRAM} db renew-epoch --yes
  ${PROGRAM} db renew-epoch --yes --if-lost-after 41 node1:9464 node2:9464`,
  async run(metrics: string[], { yes, ifLostAfter }: { yes?: true; ifLostAfter?: string }) {
    if (!yes) {
      throw new UsageError(
        'revisions, cursors and feed positions of clients become unknown; add --yes to confirm',
      );
    }
    if (ifLostAfter !== undefined && !/^\d{1,15}$/.test(ifLostAfter)) {
      throw new UsageError('--if-lost-after takes the number of a revision');
    }
    const renewed = await withDatabase(async ({ db }) => {
      const isNeeded =
        ifLostAfter === undefined || (await isAnyLost(db, Number(ifLostAfter), metrics));
      return isNeeded ? renewEpoch(db) : null;
    });
    if (renewed === null) {
      const text = 'No revision that a node has shown is lost; the epoch stays.';
      return { data: null, print: () => printLines(text) };
    }
    const { before, after, revision } = renewed;
    const text = `The epoch was ${before} and is ${after}; the newest revision is ${revision}.`;
    return { data: renewed, print: () => printLines(text) };
  },
});

/** Adds `db migrate` and all other commands for the database as a whole. */
export function addDatabaseCommands(db: Command): void {
  addMigrate(db);
  addSeed(db);
  addRoles(db);
  addHash(db);
  addVerify(db);
  addRenewEpoch(db);
  addExport(db);
  addImport(db);
}
