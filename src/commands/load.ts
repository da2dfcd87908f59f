import type { Command } from 'commander';
import type { Format } from '../ingest/format.ts';
import { FORMAT_NAMES, FORMATS, type FormatName } from '../ingest/formats.ts';
import { load } from '../ingest/load.ts';
import type { LoadReport, LoadRequest } from '../ingest/request.ts';
import { actor } from './actor.ts';
import { withDatabase } from './database.ts';
import { EXIT, UsageError } from './failure.ts';
import { fetchEcb } from './load-fetch.ts';
import { printReport, progressText } from './load-report.ts';
import { openProgress, printJson } from './output.ts';

/** The options of every format; a format may add its own. */
export interface LoadOptions {
  readonly vintage?: string;
  readonly allowCorrections?: true;
  readonly reason?: string;
  readonly json?: true;
  /** Downloads the file first. */
  readonly fetch?: true;
}

const NO_NEWS: readonly LoadReport['status'][] = ['already-loaded', 'unchanged'];

/** What the options of the command line ask of a load. */
function requestOf(
  format: FormatName,
  file: string,
  options: LoadOptions,
): Omit<LoadRequest, 'signal' | 'onProgress'> {
  const { vintage, allowCorrections, reason } = options;
  return { format, file, actor: actor(), vintage, allowCorrections, reason };
}

/** Loads files one after another, each as a batch of its own, and tells of each. */
export async function loadFiles(
  requests: readonly Omit<LoadRequest, 'signal' | 'onProgress'>[],
  { json, fetch }: Pick<LoadOptions, 'json' | 'fetch'>,
): Promise<void> {
  const progress = openProgress();
  const reports: (LoadReport & { readonly file: string })[] = [];
  await withDatabase({ schema: true }, async (client, _config, signal) => {
    for (const request of requests) {
      const onProgress: LoadRequest['onProgress'] = (state) => {
        if (!fetch) progress.update(progressText(state));
      };
      const report = await load(client, { ...request, signal, onProgress }).finally(() =>
        progress.end(),
      );
      reports.push({ file: request.file, ...report });
      const isQuiet = json || (fetch && NO_NEWS.includes(report.status));
      if (!isQuiet) printReport(report, requests.length > 1 ? request.file : null);
    }
  });
  if (json) printJson(reports.length === 1 ? reports[0] : reports);
  if (reports.some(({ status }) => status === 'refused')) process.exitCode = EXIT.refused;
}

/** The files to load: those that were named, or the one that is downloaded. */
async function filesOf(named: string[], { fetch }: LoadOptions): Promise<string[]> {
  if (fetch && named.length > 0) throw new UsageError('take files or --fetch, not both');
  if (fetch) return [await fetchEcb()];
  if (named.length === 0) throw new UsageError('name a file, or take --fetch');
  return named;
}

async function run(format: FormatName, named: string[], options: LoadOptions): Promise<void> {
  if (options.allowCorrections && !options.reason?.trim()) {
    throw new UsageError('--allow-corrections needs --reason "why published values change"');
  }
  const files = await filesOf(named, options);
  const reader: Format = FORMATS[format];
  const ordered = (await reader.inOrder?.(files)) ?? files;
  await loadFiles(
    ordered.map((file) => requestOf(format, file, options)),
    options,
  );
}

const FETCH = `
--fetch downloads the file that ECB_URL names, the history of the ECB unless it is set, and loads
it: for cron. It prints nothing when nothing is new. A download that fails is exit code 1.
`;

function addFormat(parent: Command, name: FormatName): void {
  const { title, accepts } = FORMATS[name];
  const isFetched = name === 'ecb';
  const command = parent
    .command(name)
    .summary(title)
    .description(`${title}: ${accepts}.`)
    .argument(isFetched ? '[files...]' : '<files...>', 'paths of the files, each a load of its own')
    .option('--vintage <day>', 'edition of a file that does not state it, as YYYY-MM-DD')
    .option('--allow-corrections', 'let published values change; needs --reason')
    .option('--reason <text>', 'why; kept with the load')
    .option('--json', 'print data for a program: one report, or a list for several files')
    .addHelpText(
      'after',
      `
A file is loaded whole, in one transaction and one revision, or not at all (exit code 3).
Loading the same file again changes nothing.
${isFetched ? FETCH : ''}
Examples:
  npm run --silent prices -- load ${name} ${isFetched ? '--fetch' : 'FILE'}
  npm run --silent prices -- load ${name} FILE --allow-corrections --reason "misprint" --json`,
    )
    .action((files: string[], options: LoadOptions) => run(name, files, options));
  if (isFetched) command.option('--fetch', 'download the current file, and load it');
}

/** Adds `load <format> FILE…` for every format there is. */
export function addLoadCommands(program: Command): void {
  const parent = program
    .command('load')
    .summary('load a file of prices or exchange rates')
    .description('Loads a file of prices or exchange rates.');
  for (const name of FORMAT_NAMES) addFormat(parent, name);
}
