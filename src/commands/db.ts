import type { Command } from 'commander';
import { seed } from '../db/seed.ts';
import { addArchiveCommands } from './archive.ts';
import { withDatabase } from './database.ts';
import { addEpoch } from './db-epoch.ts';
import { addHash } from './db-hash.ts';
import { addMigrate } from './db-migrate.ts';
import { addRoles } from './db-roles.ts';
import { addVerify } from './db-verify.ts';
import { addDrill } from './drill/command.ts';
import { openProgress, printJson, printLines } from './output.ts';

function addSeed(db: Command): void {
  db.command('seed')
    .summary('load reference and sample data')
    .description(
      'Adds the reference data and the sample prices that are missing. What is there stays as it ' +
        'is, also edited names.',
    )
    .option('--reference', 'only the reference data: for production')
    .option('--json', 'print data for a program')
    .addHelpText('after', '\nExample:\n  npm run --silent prices -- db seed --reference')
    .action(async (options: { reference?: true; json?: true }) => {
      const progress = openProgress();
      const seeding = withDatabase({ schema: true }, (client) =>
        seed(client, {
          reference: options.reference === true,
          onProgress: (done, total, what) => progress.update(`${what}: ${done} of ${total}`),
        }),
      );
      const report = await seeding.finally(() => progress.end());
      if (options.json) return printJson(report);
      printCounts('reference', report.reference);
      if (report.sample) printCounts('sample', report.sample);
    });
}

function printCounts(what: string, counts: object): void {
  const parts = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  printLines(`${what}: ${parts.join(' · ')}`);
}

/** Adds `db migrate` and all other commands for the database as a whole. */
export function addDatabaseCommands(program: Command): void {
  const db = program
    .command('db')
    .summary('migrate, seed, verify, export and import the database, make its accounts')
    .description(
      'Brings the schema to this version, loads seeds, makes accounts, hashes, verifies, exports ' +
        'and imports data.',
    );
  addMigrate(db);
  addSeed(db);
  addRoles(db);
  addHash(db);
  addVerify(db);
  addEpoch(db);
  addDrill(db);
  addArchiveCommands(db);
}
