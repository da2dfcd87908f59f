import type { DatedValue, UndoPreview, UndoReport } from '../../ingest/undo/undo.ts';
import { command, json, option, required } from '../command.ts';
import { withDatabase } from '../database.ts';
import { printLines } from '../output.ts';
import { wholeOf } from './ledger.ts';
import { changeText, section, type TakingOptions, takingRequest } from './report.ts';

/** What an undo will do, for a person. */
function previewLines(preview: UndoPreview): string[] {
  const price = ({ code, name }: { readonly code: string; readonly name: string }) =>
    `${code} "${name}"`;
  const value = ({ values, ...each }: DatedValue) => changeText({ ...each, before: values });
  const lines = [
    ...section('Prices taken back', preview.removedPrices, price),
    ...section('Prices brought back', preview.restoredPrices, price),
    ...section('Prices described as before', preview.changedPrices, price),
    ...section('Names taken back', preview.removedNames, ({ kind, name }) => `${kind} "${name}"`),
    ...section('Values withdrawn', preview.withdrawn, value),
    ...section('Values as before', preview.corrected, changeText),
    ...section('Values brought back', preview.restored, value),
  ];
  return lines.length > 0 ? lines : ['The batch changed nothing.'];
}

function tell({ status, batch, undoes, revision }: UndoReport): void {
  if (status === 'previewed') {
    printLines('A dry run; nothing was changed.');
    return;
  }
  const facts = [`batch ${batch}`, ...(revision === null ? [] : [`revision ${revision}`])];
  printLines(`Batch ${undoes} is undone (${facts.join(', ')}).`);
}

/** Adds `load undo`. */
export const addLoadUndo = command({
  name: 'undo',
  summary: 'take a load back',
  description:
    'Takes a batch back, as a batch of its own: what it published is withdrawn, what it ' +
    'corrected gets the value of before, what it withdrew comes back, and new prices go.',
  args: [['<batch>', 'its number: load log lists them']],
  options: [
    required('--reason <text>', 'why; kept with the undo'),
    option('--dry-run', 'only tell what the undo would do'),
    json(),
  ],
  help: `
Readers see the data as before or as after. A batch is refused (exit code 3) when later batches
changed the same values or prices; they are named: undo them first. An undo can be undone, and a
file that was undone can be loaded again.

Examples:
  npm run --silent prices -- load undo 12 --reason "the file was a draft" --dry-run
  npm run --silent prices -- load undo 12 --reason "the file was a draft"`,
  async run(text: string, options: TakingOptions) {
    const batch = wholeOf(text, 'the number of a batch');
    const request = { batch, ...takingRequest(options, previewLines) };
    const { UndoRefusal, undo } = await import('../../ingest/undo/undo.ts');
    try {
      const report = await withDatabase(({ client, signal }) =>
        undo(client, { ...request, signal }),
      );
      return { data: report, print: () => tell(report) };
    } catch (error) {
      if (!(error instanceof UndoRefusal) || !options.json) throw error;
      const { message, conflicts, exitCode } = error;
      const data = { status: 'refused', batch: null, undoes: batch, message, conflicts };
      return { data, print() {}, exitCode };
    }
  },
});
