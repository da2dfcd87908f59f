import type { UndoneCalendar } from '../../ingest/ledger/calendars.ts';
import type { BatchChange } from '../../ingest/ledger/history.ts';
import type { DatedValue, UndoPreview, UndoReport } from '../../ingest/ledger/undo.ts';
import { type Batch, readLog } from '../../ingest/load/batches.ts';
import type { Listed, Values } from '../../ingest/staging/change-set.ts';
import { UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import {
  actorText,
  by,
  checkMarkets,
  command,
  json,
  option,
  required,
  wholeOf,
} from '../command.ts';
import { withDatabase } from '../database.ts';
import { countText, printLines, printTable, timeText, writeText } from '../output.ts';
import { changeText, section, type TakingOptions, takingRequest } from './report.ts';

/** Counts of a batch that are not zero. */
function countsText(batch: Batch): string {
  const { inserted, corrected, withdrawn, unchanged, outdated, rejected } = batch;
  const counts = { inserted, corrected, withdrawn, unchanged, outdated, rejected };
  const positive = Object.entries(counts).filter(([, count]) => count > 0);
  return positive.map(([name, count]) => `${countText(count)} ${name}`).join(', ');
}

const stateOf = ({ status, undoneBy, undoes }: Batch): string => {
  const own = undoes === null ? status : `undoes ${undoes}`;
  return undoneBy === null ? own : `${own}, undone by ${undoneBy}`;
};

function printBatches(batches: readonly Batch[], hasMore: boolean): void {
  printTable(batches, {
    batch: ({ batch }) => batch,
    finished: ({ finishedAt }) => timeText(finishedAt),
    format: ({ format }) => format,
    file: ({ file }) => file,
    'sha-256': ({ sha256 }) => sha256.slice(0, 12),
    status: stateOf,
    did: countsText,
    revision: ({ revision }) => revision,
    by: actorText,
    reason: ({ reason }) => reason,
  });
  if (hasMore) printLines('', 'Older ones are not shown; a greater --limit shows more.');
}

/** Adds `load log`. */
export const addLoadLog = command({
  name: 'log',
  summary: 'list the newest loads',
  description:
    'Lists the ledger, the newest batch first: loads, refused ones too, withdrawals and undos.',
  options: [
    option('--limit <number>', 'how many').default('20'),
    option('--market <slug>', 'only those that changed this market'),
    json('print data for a program, with all there is about each'),
  ],
  help: `
Examples:
  ${PROGRAM} load log
  ${PROGRAM} load log --market nickel --limit 5 --json`,
  async run({ limit, market }: { limit: string; market?: string }) {
    const batchesMax = wholeOf('--limit', limit);
    // One more row shows whether there are further batches.
    if (market !== undefined) checkMarkets([market]);
    const asked = { limit: batchesMax + 1, market: market ?? null };
    const found = await withDatabase(({ db }) => readLog(db, asked));
    const batches = found.slice(0, batchesMax);
    return { data: batches, print: () => printBatches(batches, found.length > batchesMax) };
  },
});

/** A change on one line. */
function changeLine({ operation, code, of, date, before, after }: BatchChange): string {
  const kind = `${operation.padEnd(13)} ${of === null ? '' : `${of} `}`;
  if (date !== null) {
    const values = { before: before as Values | null, after: after as Values | null };
    return `${kind}${changeText({ code, date, ...values })}`;
  }
  const name = `${kind}${code}`;
  const lists = [before, after].map((each) => (each === null ? null : JSON.stringify(each)));
  const parts = lists.filter((each) => each !== null);
  return parts.length === 0 ? name : `${name}: ${parts.join(' → ')}`;
}

/** Prints a batch and its changes while they are read, as text or JSON. */
async function printChanges(
  batch: Batch,
  changes: AsyncIterable<BatchChange>,
  isJson: boolean,
): Promise<void> {
  let isFirst = true;
  if (isJson) {
    await writeText(`{\n"batch": ${JSON.stringify(batch)},\n"changes": [`);
    for await (const change of changes) {
      await writeText(`${isFirst ? '' : ','}\n${JSON.stringify(change)}`);
      isFirst = false;
    }
    await writeText(isFirst ? ']\n}\n' : '\n]\n}\n');
    return;
  }
  const { startedAt, finishedAt } = batch;
  const entry = { ...batch, startedAt: timeText(startedAt), finishedAt: timeText(finishedAt) };
  const facts = Object.entries(entry).filter(([, value]) => value !== null && value !== 0);
  printLines(...facts.map(([name, value]) => `${name.padEnd(13)} ${value}`), '');
  for await (const change of changes) {
    await writeText(`${changeLine(change)}\n`);
    isFirst = false;
  }
  if (isFirst) printLines('It changed nothing.');
}

/** Adds `load show`. */
export const addLoadShow = command({
  name: 'show',
  summary: 'show what a load changed',
  description:
    'Shows a batch of the ledger and every change of it: new prices and values, corrections with ' +
    'before and after, and withdrawn values.',
  args: [['<batch>', 'its number: load log lists them']],
  options: [json()],
  help: `
Examples:
  ${PROGRAM} load show 12
  ${PROGRAM} load show 12 --json`,
  // A batch may have many changes: they are printed while they are read.
  async run(number: string, options: { json?: true }) {
    const batch = wholeOf('batch', number);
    const { showBatch } = await import('../../ingest/ledger/history.ts');
    const print = (line: Batch, changes: AsyncIterable<BatchChange>) =>
      printChanges(line, changes, options.json === true);
    await withDatabase(({ client, signal }) => showBatch(client, batch, print, signal));
  },
});

/** The preview of an undo as lines. */
function undoLines(preview: UndoPreview, isWhole: boolean): string[] {
  const price = ({ code, name }: { readonly code: string; readonly name: string }) =>
    `${code} "${name}"`;
  const calendar = ({ kind, name }: UndoneCalendar) => `${kind} ${name}`;
  const value = ({ values, ...each }: DatedValue) => changeText({ ...each, before: values });
  const list = <T>(name: string, all: Listed<T>, line: (entry: T) => string): string[] =>
    section(name, all, line, { isWhole });
  const lines = [
    ...list('Prices removed', preview.removedPrices, price),
    ...list('Prices restored', preview.restoredPrices, price),
    ...list('Prices described as before', preview.changedPrices, price),
    ...list('Names removed', preview.removedNames, ({ kind, name }) => `${kind} "${name}"`),
    ...list('Calendars removed', preview.calendarsRemoved, calendar),
    ...list('Calendars as before', preview.calendarsAsBefore, calendar),
    ...list('Calendars restored', preview.calendarsRestored, calendar),
    ...list('Rates of VAT removed', preview.vatRatesRemoved, calendar),
    ...list('Rates of VAT as before', preview.vatRatesAsBefore, calendar),
    ...list('Rates of VAT restored', preview.vatRatesRestored, calendar),
    ...list('Values withdrawn', preview.withdrawn, value),
    ...list('Values as before', preview.corrected, changeText),
    ...list('Values restored', preview.restored, value),
  ];
  return lines.length > 0 ? lines : ['The batch changed nothing.'];
}

/** Prints a line for each undone batch, or one line for a dry run of all. */
function printUndone(reports: readonly UndoReport[]): void {
  for (const { status, batch, undoes, revision } of reports) {
    if (status === 'previewed') continue;
    const facts = [`batch ${batch}`, ...(revision === null ? [] : [`revision ${revision}`])];
    printLines(`Batch ${undoes} is undone (${facts.join(', ')}).`);
  }
  if (reports.some(({ status }) => status === 'previewed'))
    printLines('A dry run; nothing was changed.');
}

interface UndoOptions extends TakingOptions {
  /** Prints every entry of the preview. */
  readonly all?: true;
  readonly samples?: true;
}

/** Adds `load undo`. */
export const addLoadUndo = command({
  name: 'undo',
  summary: 'take a load back',
  description:
    'Takes a batch back, as a batch of its own: what it published is withdrawn, what it ' +
    'corrected gets the value of before, what it withdrew comes back, and new prices go.',
  args: [['[batch]', 'its number: load log lists them']],
  options: [
    option('--samples', 'instead of a batch: all sample prices and sample exchange rates'),
    required('--reason <text>', 'why; kept with the undo'),
    by(),
    option('--dry-run', 'only report the changes of the undo'),
    option('--all', 'show every change of the preview, not the first ten of each kind'),
    json(),
  ],
  help: `
Readers see the data as before or as after. A batch is refused (exit code 3) when later batches
changed the same values or prices; they are named: undo them first. An undo can be undone, and a
file that was undone can be loaded again. --samples takes back each batch of db seed, the newest
first; past revisions keep them.

Examples:
  ${PROGRAM} load undo 12 --reason "the file was a draft" --dry-run --all
  ${PROGRAM} load undo 12 --reason "the file was a draft"
  ${PROGRAM} load undo --samples --reason "real prices follow"`,
  async run(text: string | undefined, { samples, ...options }: UndoOptions) {
    if ((text === undefined) !== (samples === true)) {
      throw new UsageError('name the number of a batch, or take --samples');
    }
    const batch = text === undefined ? null : wholeOf('batch', text);
    const previewAll = options.all === true;
    const lines = (preview: UndoPreview) => undoLines(preview, previewAll);
    const request = { ...takingRequest(options, lines), previewAll };
    const { UndoRefusal, undo } = await import('../../ingest/ledger/undo.ts');
    try {
      const reports = await withDatabase(async ({ client, signal }) => {
        const whole = { ...request, signal };
        if (batch !== null) return [await undo(client, { ...whole, batch })];
        const { undoSamples } = await import('../../ingest/ledger/samples.ts');
        return undoSamples(client, whole);
      });
      return {
        data: batch === null ? { undone: reports } : reports[0],
        print: () => printUndone(reports),
      };
    } catch (error) {
      if (!(error instanceof UndoRefusal) || !options.json) throw error;
      const { message, conflicts, exitCode } = error;
      const data = { status: 'refused', batch: null, undoes: batch, message, conflicts };
      return { data, print() {}, exitCode };
    }
  },
});
