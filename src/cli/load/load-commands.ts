import type { Command } from 'commander';
import {
  FORMAT_NAMES,
  FORMATS,
  type FormatName,
  openFormat,
} from '../../ingest/formats/formats.ts';
import { load } from '../../ingest/load/load.ts';
import type { LoadReport, LoadRequest } from '../../ingest/load/request.ts';
import { sentenceOf } from '../../process/failure.ts';
import { EXIT, ExpectedError, UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import {
  actorOf,
  by,
  type CommandResult,
  command,
  json,
  option,
  printAnswer,
  required,
} from '../command.ts';
import { type Work, withDatabase } from '../database.ts';
import { printAll, reportHeld } from '../output.ts';
import { NO_PROGRESS, openProgress } from '../progress.ts';
import { addLoadCalendar } from './calendar.ts';
import { addLoadLog, addLoadShow, addLoadUndo } from './ledger.ts';
import {
  hasRejects,
  isRefused,
  previewLines,
  printProblems,
  printRefused,
  printReport,
} from './report.ts';
import { addLoadVat } from './vat.ts';

/*
 * The commands that change prices: loads of files, withdrawals, and the ledger with its undo.
 * `src/ingest` does the work; `report.ts` prints its result.
 */

/** The options of every format; a format may add its own. */
interface LoadOptions {
  readonly vintage?: string;
  readonly allowCorrections?: true;
  readonly acceptJumps?: true;
  readonly reason?: string;
  readonly rejects?: string;
  readonly overwrite?: true;
  readonly dryRun?: true;
  readonly quiet?: true;
  readonly json?: true;
  readonly by?: string;
  /** Prints every entry of the preview. */
  readonly all?: true;
  /** Downloads the file first. */
  readonly fetch?: true;
  /** Path of the mapping, of tables only. */
  readonly map?: string;
}

const NO_NEWS: readonly LoadReport['status'][] = ['already-loaded', 'unchanged'];

/** The members of a load request that the command line sets. */
type CommandRequest = Omit<
  LoadRequest,
  'signal' | 'jumpFactor' | 'onProgress' | 'onPreview' | 'onHeld'
>;

/** Builds the load request from the command line. */
function requestOf(format: FormatName, file: string, options: LoadOptions): CommandRequest {
  const { rejects: path, overwrite = false } = options;
  const rejects = path === undefined ? undefined : { file: path, overwrite };
  const previewAll = options.all === true;
  return { ...options, format, file, actor: actorOf(options), rejects, previewAll };
}

type Named = LoadReport & { readonly file: string };

/** Prints the report of one file, depending on the options. */
function printFile(report: Named, options: LoadOptions, isOneOfSeveral: boolean): void {
  const { quiet, fetch } = options;
  if (options.json || (fetch && NO_NEWS.includes(report.status))) return;
  if (!quiet) printReport(report, isOneOfSeveral ? report.file : null);
  else if (report.status === 'refused') printProblems(report);
}

/** Files of a command that could not be read. The others were loaded. */
class UnreadableFiles extends ExpectedError {
  override readonly name = 'UnreadableFiles';
  override readonly exitCode = EXIT.failed;
  override readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('; '));
    this.lines = lines;
  }
}

/** True if the file itself cannot be read: it is missing, or not permitted. */
const isUnreadable = (error: unknown, file: string): boolean => {
  const { path, code } = error as { readonly path?: unknown; readonly code?: unknown };
  return path === file && ['ENOENT', 'EACCES'].includes(String(code));
};

/** Loads files one after another, each as its own batch, and prints each report. */
async function loadFiles(
  requests: readonly CommandRequest[],
  options: LoadOptions,
): Promise<CommandResult> {
  const { quiet, fetch } = options;
  const asJson = options.json === true;
  const isOne = requests.length === 1;
  const reports: Named[] = [];
  const unreadable: string[] = [];
  const answerOf = (): CommandResult => ({
    data: isOne ? reports[0] : reports,
    print: () => (quiet ? undefined : printRefused(reports)),
    exitCode: reports.some(isRefused)
      ? EXIT.refused
      : reports.some(hasRejects)
        ? EXIT.rejects
        : EXIT.ok,
  });
  const loadOne = async ({ client, config, signal }: Work, request: CommandRequest) => {
    const progress = quiet || fetch ? NO_PROGRESS : openProgress();
    const report = await load(client, {
      ...request,
      jumpFactor: config.LOAD_JUMP_FACTOR,
      signal,
      onProgress: progress.update,
      onHeld(holders) {
        progress.end();
        if (!quiet) reportHeld(holders);
      },
      onPreview(preview) {
        progress.end();
        const lines = asJson || quiet ? [] : previewLines(preview, request.previewAll);
        const heading = !isOne && lines.length > 0 ? [`${request.file}:`] : [];
        printAll([...heading, ...lines]);
      },
    }).finally(() => progress.end());
    const named = { file: request.file, ...report };
    reports.push(named);
    printFile(named, options, !isOne);
  };
  const loadAll = async (work: Work): Promise<void> => {
    for (const request of requests) {
      await loadOne(work, request).catch((error: unknown) => {
        const isLast = !isUnreadable(error, request.file);
        if (isLast && unreadable.length === 0) throw error;
        unreadable.push(sentenceOf(error));
        if (isLast) throw new UnreadableFiles(unreadable);
      });
    }
    if (unreadable.length > 0) throw new UnreadableFiles(unreadable);
  };
  await withDatabase(loadAll, { quiet: quiet || fetch }).catch((error: unknown) => {
    // Other files stay loaded when one cannot be read, so their reports are printed.
    if (reports.length > 0) printAnswer(answerOf(), asJson);
    throw error;
  });
  return answerOf();
}

/** The named files, or the downloaded one. */
async function filesOf(named: string[], { fetch }: LoadOptions): Promise<string[]> {
  if (fetch && named.length > 0) throw new UsageError('take files or --fetch, not both');
  if (!fetch && named.length === 0) throw new UsageError('name a file, or take --fetch');
  if (!fetch) return named;
  const { fetchEcb } = await import('./download.ts');
  return [await fetchEcb()];
}

/** Rejects options that exclude each other. @throws UsageError */
function checkOptions(files: readonly string[], options: LoadOptions): void {
  if (options.allowCorrections && !options.reason?.trim()) {
    throw new UsageError('--allow-corrections needs --reason "why published values change"');
  }
  if (options.rejects !== undefined && files.length > 1) {
    throw new UsageError('--rejects takes the rejected rows of one file: load one at a time');
  }
  if (options.overwrite && options.rejects === undefined) {
    throw new UsageError('--overwrite is for the file of --rejects');
  }
}

async function run(
  format: FormatName,
  named: string[],
  options: LoadOptions,
): Promise<CommandResult> {
  checkOptions(named, options);
  const files = await filesOf(named, options);
  const reader = await openFormat(format, options.map);
  const ordered = (await reader.inOrder?.(files)) ?? files;
  return loadFiles(
    ordered.map((file) => ({ ...requestOf(format, file, options), reader })),
    options,
  );
}

const FETCH = `
--fetch downloads the file that ECB_URL names, the history of the ECB unless it is set, and loads
it: for cron. It prints nothing when nothing is new. A download that fails is exit code 1.
`;

const OTHER_TABLES = `
A file with semicolons or tabs, decimal commas, or in Windows-1252 is loaded by load table --map.
`;

/** The command that loads files of a format. */
function formatCommand(name: FormatName): (parent: Command) => void {
  const { title, accepts } = FORMATS[name];
  const isFetched = name === 'ecb';
  const isTable = name === 'table';
  const words = isTable ? `${name} --map map.yaml` : name;
  const files = isFetched ? '[files...]' : '<files...>';
  return command({
    name,
    summary: title,
    description: `${title}: ${accepts}.`,
    args: [[files, 'paths of the files, each a load of its own']],
    options: [
      option('--vintage <day>', 'edition of a file that does not state it, as YYYY-MM-DD'),
      option('--allow-corrections', 'let published values change; needs --reason'),
      option('--accept-jumps', 'let values differ from their neighbours by more than the limit'),
      option('--reason <text>', 'why; kept with the load'),
      by(),
      option('--dry-run', 'only report the changes of the load'),
      option('--all', 'show every change of the preview, not the first ten of each kind'),
      option('--rejects <path>', 'copy the lines of rejected rows to this file, load the others'),
      option('--overwrite', 'let the files of --rejects replace those that are there'),
      option('--quiet', 'print nothing but errors: for cron'),
      json('print data for a program: one report, or a list for several files'),
      ...(isFetched ? [option('--fetch', 'download the current file, and load it')] : []),
      ...(isTable
        ? [required('--map <mapping>', 'path of the mapping (YAML): docs/mapping.md')]
        : []),
    ],
    help: `
A file is loaded whole, in one transaction and one revision, or not at all (exit code 3); what
it does is reported first. Loading the same file again changes nothing. With --rejects, exit
code 6 says that some rows were rejected and the others loaded.
${isFetched ? FETCH : ''}${name === 'csv' ? OTHER_TABLES : ''}
Examples:
  ${PROGRAM} load ${words} ${isFetched ? '--fetch' : 'FILE'}
  ${PROGRAM} load ${words} FILE --dry-run
  ${PROGRAM} load ${words} FILE --rejects rejects.csv
  ${PROGRAM} load ${words} FILE --allow-corrections --reason misprint --dry-run --all
  ${PROGRAM} load ${words} FILE --allow-corrections --reason misprint`,
    run: (named: string[], options: LoadOptions) => run(name, named, options),
  });
}

/** `load <format> FILE…` for every format there is, and the commands for the ledger. */
export const LOAD_COMMANDS = [
  ...FORMAT_NAMES.map(formatCommand),
  addLoadCalendar,
  addLoadVat,
  addLoadLog,
  addLoadShow,
  addLoadUndo,
];
