import { type MigrationStatus, migrateUp, migrationStatus } from '../../db/migrate/migrate.ts';
import { type Preview, previewMigrations } from '../../db/migrate/migrations.ts';
import { UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { type CommandResult, command, json, option } from '../command.ts';
import { withDatabase } from '../database.ts';
import { printLines, printTable, reportHeld, timeText } from '../output.ts';

interface MigrateArguments {
  readonly status?: true;
  readonly dryRun?: true;
}

const ANY_SCHEMA = { schema: false };

const MEANINGS: Readonly<Record<MigrationStatus['state'], string>> = {
  ran: '',
  pending: '',
  changed: 'its file is not what ran',
  unknown: 'of a newer version',
};

function printStatus(all: readonly MigrationStatus[]): void {
  printTable(all, {
    migration: ({ name }) => name,
    ran: ({ executedAt }) => (executedAt === null ? 'pending' : timeText(executedAt)),
    remark: ({ state }) => MEANINGS[state],
  });
}

/** Prints the statements of pending migrations as a psql script. */
function printPreview(previews: readonly Preview[]): void {
  if (previews.length === 0) printLines('-- The schema is up to date: nothing would run.');
  for (const { name, transaction, statements } of previews) {
    printLines(`-- ${name}`, ...(transaction ? ['begin;'] : []));
    for (const each of statements) printLines(`${each.trim().replace(/;?$/, ';')}\n`);
    printLines(...(transaction ? ['commit;', ''] : []));
  }
}

async function runPending(): Promise<CommandResult> {
  const { ran, newer } = await withDatabase(async ({ db, progress }) => {
    const onWait = (tries: number) => progress.update(`a table is in use; tried ${tries} times`);
    const names = await migrateUp(db, { onWait, onHeld: reportHeld });
    const states = await migrationStatus(db);
    return { ran: names, newer: states.find(({ state }) => state === 'unknown') };
  }, ANY_SCHEMA);
  const text = ran.length === 0 ? 'The schema is up to date.' : `Ran ${ran.join(', ')}.`;
  const other = newer && `A newer version has migrated the database (${newer.name} and later).`;
  return { data: { ran }, print: () => printLines(other ?? text) };
}

/** Adds `db migrate`. */
export const addMigrate = command({
  name: 'migrate',
  summary: 'migrate the schema to this version',
  description:
    'Runs the migrations that the database lacks, each in a separate transaction, without ' +
    'blocking readers. Concurrent runs wait for each other.',
  options: [
    option('--status', 'only list the migrations and when they ran'),
    option('--dry-run', 'only print the SQL that would run; nothing is run or locked'),
    json(),
  ],
  help: `
A run also adds missing markets and scopes of the catalog, and updates the rights of accounts
that "db roles" created. A locked table is retried for half a minute. After that, or after a
crash, run the command again: it continues where it stopped.

Examples:
  ${PROGRAM} db migrate
  ${PROGRAM} db migrate --dry-run > pending.sql
  ${PROGRAM} db migrate --status --json`,
  async run({ status, dryRun }: MigrateArguments) {
    if (status && dryRun) throw new UsageError('take one of --status and --dry-run');
    if (status) {
      const all = await withDatabase(({ db }) => migrationStatus(db), ANY_SCHEMA);
      return { data: all, print: () => printStatus(all) };
    }
    if (!dryRun) return runPending();
    const previews = await withDatabase(({ db }) => previewMigrations(db), ANY_SCHEMA);
    return { data: previews, print: () => printPreview(previews) };
  },
});
