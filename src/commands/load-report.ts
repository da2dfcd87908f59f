import type { LoadReport } from '../ingest/request.ts';
import { printLines } from './output.ts';

const ERRORS_SHOWN = 50;

/** The problems of a file, each as `file:line: what is wrong`, for an editor to jump to. */
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
  previewed: 'A dry run; nothing was changed',
};

/** Prints the problems of a file on stderr, when it has any. */
export function printProblems(report: LoadReport): void {
  if (report.errorsTotal > 0) process.stderr.write(`${errorLines(report).join('\n')}\n`);
}

/** Prints what became of one file, for a person; its path stands before it where it is given. */
export function printReport(report: LoadReport, path: string | null = null): void {
  const { counts, status, batch, revision, vintage, rejects } = report;
  printProblems(report);
  const facts = [
    ...(batch === null ? [] : [`batch ${batch}`]),
    ...(revision === null ? [] : [`revision ${revision}`]),
    ...(vintage === null ? [] : [`vintage ${vintage}`]),
  ];
  const name = path === null ? '' : `${path}: `;
  printLines(`${name}${MEANINGS[status]}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}.`);
  if (status === 'already-loaded') return;
  const { pricesAdded, pricesChanged, ...rows } = counts;
  printLines(
    Object.entries(rows)
      .map(([name, count]) => `${name} ${count}`)
      .join(' · '),
    ...(pricesAdded + pricesChanged > 0
      ? [`prices added ${pricesAdded} · prices changed ${pricesChanged}`]
      : []),
    ...(rejects === null ? [] : [`The rejected rows are in ${rejects}.`]),
  );
}
