import type { Client } from '../../db/client.ts';
import type {
  EntryChange,
  ReferenceReport,
  ReferenceRequest,
} from '../../ingest/load/reference-file.ts';
import { EXIT } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { actorOf, by, command, json, option } from '../command.ts';
import { countText, printAll, printLines, reportHeld } from '../output.ts';
import { errorLines, MEANINGS, section } from './report.ts';

interface ReferenceOptions {
  readonly reason?: string;
  readonly by?: string;
  readonly dryRun?: true;
  /** Prints every entry of the preview. */
  readonly all?: true;
  readonly quiet?: true;
  readonly json?: true;
}

function printReport(report: ReferenceReport<EntryChange<unknown>>): void {
  const { status, batch, revision, counts } = report;
  const facts = [
    ...(batch === null ? [] : [`batch ${batch}`]),
    ...(revision === null ? [] : [`revision ${revision}`]),
  ];
  printLines(`${MEANINGS[status]}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}.`);
  if (status === 'already-loaded' || status === 'refused') return;
  const { inserted, corrected, withdrawn = 0, unchanged } = counts;
  const shown = { new: inserted, changed: corrected, ended: withdrawn, unchanged };
  printLines(
    Object.entries(shown)
      .map(([name, count]) => `${name} ${countText(count)}`)
      .join(' · '),
  );
}

/** A command that loads a file of reference data. */
interface ReferenceCommand<Change> {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** Examples of its help: the arguments after its name. */
  readonly examples: readonly string[];
  /** The unit of the file that it states whole, as a sentence of the help. */
  readonly stays: string;
  /** The heading of the preview. */
  readonly heading: string;
  /** A change on one line. */
  readonly line: (change: Change, isWhole: boolean) => string;
  /** Imports the loader, which a start of the program does not need. */
  readonly load: () => Promise<
    (client: Client, request: ReferenceRequest<Change>) => Promise<ReferenceReport<Change>>
  >;
}

/** Adds `load <name>`. */
export const referenceCommand = <Change extends EntryChange<unknown>>({
  name,
  summary,
  description,
  examples,
  stays,
  heading,
  line,
  load,
}: ReferenceCommand<Change>) =>
  command({
    name,
    summary,
    description,
    args: [['<file>', 'path of the file']],
    options: [
      option('--reason <text>', 'why; kept with the load'),
      by(),
      option('--dry-run', 'only report the changes of the load'),
      option('--all', 'show every change of the preview, not the first ten of each kind'),
      option('--quiet', 'print nothing but errors: for cron'),
      json(),
    ],
    help: `
A file is loaded whole, in one transaction and one revision, or not at all (exit code 3). Its
changes are reported first. ${stays}
A load is a batch of the ledger; load undo takes it back.

Examples:
${examples.map((each) => `  ${PROGRAM} load ${name} ${each}`).join('\n')}`,
    async run(file: string, options: ReferenceOptions) {
      const { quiet, json: asJson } = options;
      const { withDatabase } = await import('../database.ts');
      const loadFile = await load();
      const report = await withDatabase(
        ({ client, signal }) =>
          loadFile(client, {
            ...options,
            file,
            actor: actorOf(options),
            signal,
            onHeld: (holders) => (quiet ? undefined : reportHeld(holders)),
            onPreview({ changes }) {
              if (asJson || quiet) return;
              const isWhole = options.all === true;
              printAll(section(heading, changes, (each) => line(each, isWhole), { isWhole }));
            },
          }),
        { quiet },
      );
      if (report.errorsTotal > 0 && !asJson) {
        process.stderr.write(`${errorLines(report).join('\n')}\n`);
      }
      return {
        data: { file, ...report },
        print: () => (quiet ? undefined : printReport(report)),
        exitCode: report.status === 'refused' ? EXIT.refused : EXIT.ok,
      };
    },
  });
