import { quoted } from '../../errors.ts';
import type { LoadPreview, LoadReport } from '../../ingest/load/request.ts';
import type { Remedy } from '../../ingest/records/load-error.ts';
import type { Listed, Values } from '../../ingest/staging/change-set.ts';
import { UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { actorOf } from '../command.ts';
import { countText, printAll, printLines, reportHeld } from '../output.ts';

/** Printed entries of each list without --all. */
const SHOWN_MAX = 10;

/** Low, mid and high; `–` for a missing one. */
const valuesText = ({ low, mid, high }: Values): string =>
  low === null && high === null ? mid : `${low ?? '–'} / ${mid} / ${high ?? '–'}`;

/** A changed value: before, after, or both. */
interface Changed {
  readonly code: string;
  readonly date: string;
  readonly before?: Values | null;
  readonly after?: Values | null;
}

/** A change of a value: `XX-NI-1 2024-12-30: 111 → 112`. */
export function changeText({ code, date, before = null, after = null }: Changed): string {
  const values = [before, after].filter((each) => each !== null);
  return `${code} ${date}: ${values.map(valuesText).join(' → ')}`;
}

interface SectionOptions {
  /** The count of the heading; the total by default. */
  readonly count?: string;
  /** True to print every entry. */
  readonly isWhole?: boolean;
}

/** A section of a preview: a heading with the total, and the first entries or all of them. */
export function section<T>(
  name: string,
  { total, shown: all }: Listed<T>,
  line: (entry: T) => string,
  { count = countText(total), isWhole = false }: SectionOptions = {},
): string[] {
  if (total === 0) return [];
  const shown = isWhole ? all : all.slice(0, SHOWN_MAX);
  const more = total - shown.length;
  const rest = more > 0 ? [`  and ${countText(more)} more; --all shows them`] : [];
  return [`${name}: ${count}`, ...shown.map((entry) => `  ${line(entry)}`), ...rest];
}

const text = (value: string | null): string => (value === null ? 'none' : `"${quoted(value)}"`);

/**
 * The preview of a load as lines; empty if the load would change nothing.
 * @param isWhole true for every entry, so that a person sees each correction before it is made
 */
export function previewLines(preview: LoadPreview, isWhole = false): string[] {
  const { newCurrencies, newValues } = preview;
  const currencies = { total: newCurrencies.length, shown: newCurrencies };
  const codes = `${countText(newValues.total)} ${newValues.total === 1 ? 'code' : 'codes'}`;
  const list = <T>(name: string, all: Listed<T>, line: (entry: T) => string): string[] =>
    section(name, all, line, { isWhole });
  return [
    ...list('New prices', preview.newPrices, ({ code, name }) => `${code} ${text(name)}`),
    ...list(
      'Changed attributes of prices',
      preview.changedPrices,
      ({ code, field, before, after }) => `${code} ${field}: ${text(before)} → ${text(after)}`,
    ),
    ...list('New names', preview.newNames, ({ kind, name }) => `${kind} ${text(name)}`),
    ...list('New currencies', currencies, (iso) => iso),
    ...section(
      'New values',
      newValues,
      ({ code, values, from, to }) =>
        `${code} ${countText(values)}, ${from === to ? from : `${from} to ${to}`}`,
      { count: `${countText(newValues.values)}, of ${codes}`, isWhole },
    ),
    ...list('Published again after they were withdrawn', preview.again, changeText),
    ...list('Corrections', preview.corrections, changeText),
  ];
}

const ERRORS_SHOWN = 50;

interface Faults {
  readonly errors: readonly (Omit<LoadReport['errors'][number], 'file'> & {
    /** Null for values of the command line. */
    readonly file: string | null;
  })[];
  readonly errorsTotal: number;
}

/** Quotes a word for a shell. */
const shellQuoted = (word: string): string =>
  /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** A command line that writes a mapping next to a file and loads the file with it. */
const loadLine = (file: string, { mapping }: Remedy): string => {
  const map = shellQuoted(`${file}.map.yaml`);
  const text = shellQuoted(JSON.stringify(mapping));
  return (
    `printf '%s\\n' ${text} > ${map} && ` +
    `${PROGRAM} load table ${shellQuoted(file)} --map ${map}`
  );
};

/**
 * Lines for the problems of a file as `file:line: message`, which editors can open, with command
 * lines that load the file after all.
 */
export function errorLines({ errors, errorsTotal }: Faults): string[] {
  const shown = errors.slice(0, ERRORS_SHOWN);
  const lines = shown.flatMap(({ file, line, position, column, value, ...error }) => {
    const at = [line, position].filter((each) => (each ?? null) !== null);
    const place = file === null ? '' : `${[file, ...at].join(':')}: `;
    // For an invalid column name, the column and the value are the same text.
    const name = column === value ? null : column;
    const what = [name, value === null ? null : `"${value}"`].filter((each) => each !== null);
    const where = what.length === 0 ? '' : `${what.join(' ')}: `;
    const remedies = (error.remedies ?? []).flatMap((each) => [
      `If ${each.when}, load it by:`,
      loadLine(file ?? '', each),
    ]);
    return [`${place}${where}${error.message} (${error.code})`, ...remedies];
  });
  const more = errorsTotal - shown.length;
  return more > 0 ? [...lines, `and ${countText(more)} more`] : lines;
}

/** The results of a load as text. */
export const MEANINGS: Readonly<Record<LoadReport['status'], string>> = {
  applied: 'Loaded',
  unchanged: 'Nothing to change',
  'already-loaded': 'This file was loaded before',
  refused: 'Refused; nothing was changed',
  previewed: 'A dry run; nothing was changed',
};

/** True if some rows were set aside by --rejects, and the others loaded or found unchanged. */
export const hasRejects = (report: LoadReport): boolean =>
  !isRefused(report) && report.counts.rejected > 0;

/** True if every value of a file was rejected. */
const isAllRejected = ({ counts, status }: LoadReport): boolean =>
  status !== 'applied' && counts.rejected > 0 && counts.rejected === counts.rows;

/** True if the file was refused, or all its values were rejected. */
export const isRefused = (report: LoadReport): boolean =>
  report.status === 'refused' || isAllRejected(report);

/** The result of a load as text. */
function meaningOf(report: LoadReport): string {
  const { status, preview } = report;
  if (status === 'unchanged' && isAllRejected(report)) return 'Every row was rejected';
  const isIdle = status === 'previewed' && preview !== null && previewLines(preview).length === 0;
  return isIdle ? 'A dry run; nothing is new, and nothing to correct' : MEANINGS[status];
}

/** Prints the problems of a file on stderr. */
export function printProblems(report: LoadReport): void {
  if (report.errorsTotal > 0) process.stderr.write(`${errorLines(report).join('\n')}\n`);
}

/** Prints a summary of refused files after several loads. */
export function printRefused(reports: readonly (LoadReport & { readonly file: string })[]): void {
  const refused = reports.filter(isRefused);
  if (reports.length < 2 || refused.length === 0) return;
  const names = refused.map(({ file }) => file).join(', ');
  process.stderr.write(`${refused.length} of ${reports.length} files refused: ${names}\n`);
}

/** Prints the report of one file as text, after its path if one is given. */
export function printReport(report: LoadReport, path: string | null = null): void {
  const { counts, status, batch, revision, vintage, rejects } = report;
  printProblems(report);
  const facts = [
    ...(batch === null ? [] : [`batch ${batch}`]),
    ...(revision === null ? [] : [`revision ${revision}`]),
    ...(vintage === null ? [] : [`vintage ${vintage}`]),
  ];
  const name = path === null ? '' : `${path}: `;
  printLines(`${name}${meaningOf(report)}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}.`);
  if (status === 'already-loaded') return;
  const { pricesAdded, pricesChanged, ...rows } = counts;
  printLines(
    Object.entries(rows)
      .map(([name, count]) => `${name} ${countText(count)}`)
      .join(' · '),
    ...(pricesAdded + pricesChanged > 0
      ? [`prices added ${countText(pricesAdded)} · prices changed ${countText(pricesChanged)}`]
      : []),
    ...(rejects === null
      ? []
      : [`The rejected rows are in ${rejects}, the reasons in ${rejects}.reasons.csv.`]),
  );
}

/** Options of `load undo` and `withdraw`. */
export interface TakingOptions {
  readonly reason: string;
  readonly dryRun?: true;
  readonly json?: true;
  readonly by?: string;
}

/**
 * Request members that `load undo` and `withdraw` share; the preview is printed before the change.
 * @throws UsageError without a reason
 */
export function takingRequest<Preview>(
  { reason: text, dryRun, json, by }: TakingOptions,
  linesOf: (preview: Preview) => readonly string[],
) {
  const reason = text.trim();
  if (reason === '') throw new UsageError('--reason has to say why');
  const onPreview = (preview: Preview): void => {
    if (!json) printAll(linesOf(preview));
  };
  return { actor: actorOf({ by }), reason, dryRun, onPreview, onHeld: reportHeld };
}
