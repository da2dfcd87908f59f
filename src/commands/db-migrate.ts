import type { Command } from 'commander';
import { type MigrationStatus, migrateDown, migrateUp, migrationStatus } from '../db/migrate.ts';
import { type Preview, previewMigrations } from '../db/migrations.ts';
import { withDatabase } from './database.ts';
import { UsageError } from './failure.ts';
import { openProgress, printJson, printLines, printTable, tellHeld, timeText } from './output.ts';

interface MigrateOptions {
  readonly status?: true;
  readonly dryRun?: true;
  readonly down?: true;
  readonly yes?: true;
  readonly json?: true;
}

const MEANINGS: Readonly<Record<MigrationStatus['state'], string>> = {
  ran: '',
  pending: '',
  changed: 'its file is not what ran',
  unknown: 'of a newer version',
};

function printStatus(all: MigrationStatus[], json: true | undefined): void {
  if (json) printJson(all);
  else {
    printTable(all, {
      migration: ({ name }) => name,
      ran: ({ executedAt }) => (executedAt === null ? 'pending' : timeText(executedAt)),
      remark: ({ state }) => MEANINGS[state],
    });
  }
}

/** The statements as a file for psql, each migration as it would be run. */
function printPreview(previews: readonly Preview[]): void {
  if (previews.length === 0) printLines('-- The schema is up to date: nothing would run.');
  for (const { name, transaction, statements } of previews) {
    printLines(`-- ${name}`, ...(transaction ? ['begin;'] : []));
    for (const each of statements) printLines(`${each.trim().replace(/;?$/, ';')}\n`);
    printLines(...(transaction ? ['commit;', ''] : []));
  }
}

async function takeBack(options: MigrateOptions): Promise<void> {
  if (!options.yes) {
    throw new UsageError('--down changes the schema under a running service; add --yes to confirm');
  }
  const name = await withDatabase({ schema: false }, ({ db }) => migrateDown(db));
  if (options.json) printJson({ takenBack: name });
  else printLines(name === null ? 'There was nothing to take back.' : `Took back ${name}.`);
}

async function bringUp(options: MigrateOptions): Promise<void> {
  const progress = openProgress();
  const onWait = (tries: number) => progress.update(`a table is in use; tried ${tries} times`);
  const { ran, newer } = await withDatabase({ schema: false }, async ({ db }) => {
    const names = await migrateUp(db, { onWait, onHeld: tellHeld });
    const states = await migrationStatus(db);
    return { ran: names, newer: states.filter(({ state }) => state === 'unknown') };
  }).finally(() => progress.end());
  if (options.json) return printJson({ ran });
  const [first] = newer;
  if (first) printLines(`A newer version has migrated the database (${first.name} and later).`);
  else printLines(ran.length === 0 ? 'The schema is up to date.' : `Ran ${ran.join(', ')}.`);
}

async function migrate(options: MigrateOptions): Promise<void> {
  const modes = [options.status, options.dryRun, options.down].filter((each) => each);
  if (modes.length > 1) throw new UsageError('take one of --status, --dry-run and --down');
  if (options.down) return takeBack(options);
  if (options.status) {
    const all = await withDatabase({ schema: false }, ({ db }) => migrationStatus(db));
    return printStatus(all, options.json);
  }
  if (!options.dryRun) return bringUp(options);
  const previews = await withDatabase({ schema: false }, ({ db }) => previewMigrations(db));
  if (options.json) return printJson(previews);
  return printPreview(previews);
}

/** Adds `db migrate`. */
export function addMigrate(db: Command): void {
  db.command('migrate')
    .summary('bring the schema to this version')
    .description(
      'Runs the migrations that the database lacks, each in a transaction of its own, while ' +
        'readers go on. Two runners at once wait for each other.',
    )
    .option('--status', 'only list the migrations and when they ran')
    .option('--dry-run', 'only print the SQL that would run; nothing is run or locked')
    .option('--down', 'take back the newest migration, unless data would be lost (exit code 3)')
    .option('--yes', 'confirm --down')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
A run also adds the markets and scopes of the catalog that the database lacks, and brings the
rights of accounts made by "db roles" to this version. A table that is in use is tried again
for half a minute; then, and after a crash, run it again: it goes on where it was.

Examples:
  npm run --silent prices -- db migrate
  npm run --silent prices -- db migrate --dry-run > pending.sql
  npm run --silent prices -- db migrate --status --json`,
    )
    .action(migrate);
}
