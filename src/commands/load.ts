import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { FORMAT_NAMES, FORMATS, type FormatName } from '../ingest/formats.ts';
import { type LoadProgress, type LoadReport, load } from '../ingest/load.ts';
import { withDatabase } from './database.ts';
import { EXIT, UsageError } from './failure.ts';
import { openProgress, printJson, printLines } from './output.ts';

const ERRORS_SHOWN = 50;

interface LoadOptions {
  readonly vintage?: string;
  readonly allowCorrections?: true;
  readonly reason?: string;
  readonly json?: true;
}

function actor(): string {
  try {
    return userInfo().username;
  } catch {
    // An account without an entry in the list of users, as in some containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

function progressText({ rows, bytes, bytesTotal }: LoadProgress): string {
  const share = bytesTotal ? ` · ${Math.min(100, Math.floor((100 * bytes) / bytesTotal))} %` : '';
  return `${rows.toLocaleString('en')} rows read${share}`;
}

/** The errors of a refused file, each as `file:line: what is wrong`, for an editor to jump to. */
function errorLines({ errors, errorsTotal }: LoadReport): string[] {
  const lines = errors.slice(0, ERRORS_SHOWN).map(({ file, line, column, value, ...error }) => {
    const place = `${file}${line === null ? '' : `:${line}`}`;
    const where = column === null ? '' : ` ${column}`;
    const what = value === null ? '' : ` "${value}"`;
    return `${place}:${where}${what}: ${error.message} (${error.code})`;
  });
  const more = errorsTotal - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

const MEANINGS: Readonly<Record<LoadReport['status'], string>> = {
  applied: 'Loaded',
  unchanged: 'Nothing to change',
  'already-loaded': 'This file was loaded before',
  refused: 'Refused; nothing was changed',
};

function printReport(report: LoadReport): void {
  const { counts, status, batch, revision, vintage } = report;
  if (status === 'refused') process.stderr.write(`${errorLines(report).join('\n')}\n`);
  const facts = [
    ...(batch === null ? [] : [`batch ${batch}`]),
    ...(revision === null ? [] : [`revision ${revision}`]),
    ...(vintage === null ? [] : [`vintage ${vintage}`]),
  ];
  printLines(`${MEANINGS[status]}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}.`);
  if (status === 'already-loaded') return;
  const { pricesAdded, pricesChanged, ...rows } = counts;
  printLines(
    Object.entries(rows)
      .map(([name, count]) => `${name} ${count}`)
      .join(' · '),
    ...(pricesAdded + pricesChanged > 0
      ? [`prices added ${pricesAdded} · prices changed ${pricesChanged}`]
      : []),
  );
}

async function run(format: FormatName, file: string, options: LoadOptions): Promise<void> {
  if (options.allowCorrections && !options.reason?.trim()) {
    throw new UsageError('--allow-corrections needs --reason "why published values change"');
  }
  const progress = openProgress();
  const loading = withDatabase({ schema: true }, (client, _config, signal) =>
    load(client, {
      format,
      file,
      actor: actor(),
      vintage: options.vintage,
      allowCorrections: options.allowCorrections,
      reason: options.reason,
      signal,
      onProgress: (state) => progress.update(progressText(state)),
    }),
  );
  const report = await loading.finally(() => progress.end());
  if (options.json) printJson(report);
  else printReport(report);
  if (report.status === 'refused') process.exitCode = EXIT.refused;
}

function addFormat(parent: Command, name: FormatName): void {
  const { title, accepts } = FORMATS[name];
  parent
    .command(name)
    .summary(title)
    .description(`${title}: ${accepts}.`)
    .argument('<file>', 'path of the file')
    .option('--vintage <day>', 'edition of a file that does not state it, as YYYY-MM-DD')
    .option('--allow-corrections', 'let published values change; needs --reason')
    .option('--reason <text>', 'why; kept with the load')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
The file is loaded whole, in one transaction and one revision, or not at all (exit code 3).
Loading the same file again changes nothing.

Examples:
  npm run --silent prices -- load ${name} FILE
  npm run --silent prices -- load ${name} FILE --allow-corrections --reason "misprint" --json`,
    )
    .action((file: string, options: LoadOptions) => run(name, file, options));
}

/** Adds `load <format> FILE` for every format there is. */
export function addLoadCommands(program: Command): void {
  const parent = program
    .command('load')
    .summary('load a file of prices or exchange rates')
    .description('Loads a file of prices or exchange rates.');
  for (const name of FORMAT_NAMES) addFormat(parent, name);
}
