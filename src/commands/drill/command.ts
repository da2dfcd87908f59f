import { type Command, Option } from 'commander';
import type { Client } from '../../db/client.ts';
import { withDatabase } from '../database.ts';
import { EXIT, UsageError } from '../failure.ts';
import { openProgress, printJson, printLines, printTable } from '../output.ts';
import { type DrillReport, drill, type Way } from './run.ts';
import { findTools } from './tools.ts';

interface DrillOptions {
  readonly by?: 'dump' | 'export';
  readonly server?: string;
  readonly keep?: true;
  readonly json?: true;
}

/** The tools of PostgreSQL where they can read this server, else our own export. */
async function wayFor(client: Client, by: DrillOptions['by']): Promise<Way> {
  if (by === 'export') return 'export';
  const tools = await findTools();
  const { rows } = await client.pool.query<{ major: number }>(
    `select current_setting('server_version_num')::integer / 10000 as major`,
  );
  const major = rows[0]?.major ?? 0;
  if (tools && tools.version >= major) return { tools };
  if (by !== 'dump') return 'export';
  const found = tools ? `the pg_dump in the PATH is of version ${tools.version}` : 'none is there';
  throw new UsageError(`--by dump needs pg_dump and pg_restore ${major} or newer; ${found}`);
}

const short = (text: string): string => text.replace(/[0-9a-f]{64}/, (sum) => sum.slice(0, 12));

function printReport({ revision, bytes, steps, compared, broken, kept }: DrillReport): void {
  const isSame = ({ original, restored }: DrillReport['compared'][number]) => original === restored;
  printTable(compared, {
    what: ({ what }) => what,
    original: ({ original }) => short(original),
    restored: ({ restored }) => short(restored),
    same: (each) => (isSame(each) ? 'yes' : 'NO'),
  });
  printLines('');
  printTable(steps, { step: ({ step }) => step, seconds: ({ seconds }) => seconds.toFixed(1) });
  const different = compared.filter((each) => !isSame(each)).length;
  const size = `${(bytes / 1e6).toFixed(1)} MB`;
  printLines(
    '',
    different + broken.length === 0
      ? `The restored copy is the original: ${compared.length} tables compared ` +
          `(revision ${revision}, ${size}).`
      : `The restored copy differs in ${different} of ${compared.length} tables` +
          `${broken.length > 0 ? ` and breaks ${broken.join(', ')}` : ''} (revision ${revision}).`,
    ...(kept === null ? [] : [`It was kept as the database ${kept}.`]),
  );
}

async function run({ by, server, keep, json }: DrillOptions): Promise<void> {
  const progress = openProgress();
  const drilling = withDatabase({ schema: true }, async (client, config, signal) => {
    const url = client.servers.current;
    return drill(client, config, {
      way: await wayFor(client, by),
      url,
      server: server ?? url,
      keep: keep === true,
      signal,
      onStep: (name) => progress.update(name),
    });
  });
  const report = await drilling.finally(() => progress.end());
  if (json) printJson(report);
  else printReport(report);
  const isSame = report.compared.every(({ original, restored }) => original === restored);
  if (!isSame || report.broken.length > 0) process.exitCode = EXIT.failed;
}

/** Adds `db drill`. */
export function addDrill(db: Command): void {
  db.command('drill')
    .summary('restore a backup into a copy, and compare')
    .description(
      'Backs the database up, restores the backup into a database of its own, checks its rules, ' +
        'and compares the exports of both, table by table and byte for byte.',
    )
    .addOption(
      new Option(
        '--by <way>',
        'dump: pg_dump and pg_restore, which have to be in the PATH and ' +
          'no older than the server; export: db export and import',
      ).choices(['dump', 'export']),
    )
    .option('--server <url>', 'where to make the copy: any database of another server')
    .option('--keep', 'leave the copy, to look at it')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
The original is only read, and the copy is removed. It needs an account that may make databases,
and room for a second copy. Without --by it takes pg_dump where it can. Exit code 0 says that
the copy is the original, 1 that something differs or failed.

Examples:
  npm run --silent prices -- db drill
  npm run --silent prices -- db drill --server postgres://postgres@spare.example/postgres --json`,
    )
    .action(run);
}
