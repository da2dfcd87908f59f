import type { Command } from 'commander';
import { type MigrationStatus, migrateDown, migrateUp, migrationStatus } from '../db/migrate.ts';
import { previewMigrations } from '../db/preview.ts';
import { seed } from '../db/seed.ts';
import { withDatabase } from './database.ts';
import { addHash } from './db-hash.ts';
import { UsageError } from './failure.ts';
import { openProgress, printJson, printLines, printTable } from './output.ts';
import { addRoles } from './roles.ts';

interface MigrateOptions {
  readonly status?: true;
  readonly dryRun?: true;
  readonly down?: true;
  readonly yes?: true;
  readonly json?: true;
}

function printStatus(all: MigrationStatus[], json: true | undefined): void {
  if (json) printJson(all);
  else {
    printTable(all, {
      migration: (each) => each.name,
      ran: (each) => each.executedAt ?? 'pending',
    });
  }
}

async function takeBack(options: MigrateOptions): Promise<void> {
  if (!options.yes) {
    throw new UsageError('--down drops tables with their data; add --yes if you mean it');
  }
  const name = await withDatabase({ schema: false }, ({ db }) => migrateDown(db));
  if (options.json) printJson({ takenBack: name });
  else printLines(name === null ? 'There was nothing to take back.' : `Took back ${name}.`);
}

async function migrate(options: MigrateOptions): Promise<void> {
  const modes = [options.status, options.dryRun, options.down].filter((each) => each);
  if (modes.length > 1) throw new UsageError('take one of --status, --dry-run and --down');
  if (options.down) return takeBack(options);
  if (options.status) {
    const all = await withDatabase({ schema: false }, ({ db }) => migrationStatus(db));
    return printStatus(all, options.json);
  }
  if (options.dryRun) {
    const statements = await withDatabase({ schema: false }, (client) => previewMigrations(client));
    if (options.json) return printJson(statements);
    return printLines(...statements.map((each) => `${each.trim().replace(/;?$/, ';')}\n`));
  }
  const ran = await withDatabase({ schema: false }, ({ db }) => migrateUp(db));
  if (options.json) return printJson({ ran });
  printLines(ran.length === 0 ? 'The schema is up to date.' : `Ran ${ran.join(', ')}.`);
}

function addMigrate(db: Command): void {
  db.command('migrate')
    .summary('bring the schema to this version')
    .description('Runs the migrations that the database lacks. Two at once wait for each other.')
    .option('--status', 'only list the migrations and when they ran')
    .option('--dry-run', 'only print the SQL: what ran in a transaction that was rolled back')
    .option('--down', 'take back the newest migration; its data is lost')
    .option('--yes', 'confirm --down')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
A run also adds the markets and scopes of the catalog that the database lacks. --dry-run shows
the migrations only; it holds their locks while it tries them.

Examples:
  npm run --silent prices -- db migrate
  npm run --silent prices -- db migrate --dry-run > pending.sql
  npm run --silent prices -- db migrate --status --json`,
    )
    .action(migrate);
}

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

/** Adds `db migrate`, `db seed`, `db roles` and `db hash`. */
export function addDatabaseCommands(program: Command): void {
  const db = program
    .command('db')
    .summary('migrate and seed the database, make its accounts, hash its data')
    .description('Brings the schema to this version, loads seeds, makes accounts and hashes data.');
  addMigrate(db);
  addSeed(db);
  addRoles(db);
  addHash(db);
}
