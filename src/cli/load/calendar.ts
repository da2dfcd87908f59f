import type { CalendarDefinition, HolidayList } from '../../calendar/definition.ts';
import type {
  CalendarChange,
  CalendarPreview,
  CalendarReport,
} from '../../ingest/calendar/load-calendar.ts';
import { EXIT } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { actorOf, by, command, json, option } from '../command.ts';
import { countText, printAll, printLines, reportHeld } from '../output.ts';
import { errorLines, MEANINGS, section } from './report.ts';

interface CalendarOptions {
  readonly reason?: string;
  readonly by?: string;
  readonly dryRun?: true;
  readonly quiet?: true;
  /** Prints every entry of the preview. */
  readonly all?: true;
  readonly json?: true;
}

const isList = (value: NonNullable<CalendarChange['after']>): value is HolidayList =>
  typeof value === 'object' && 'days' in value;

/** The holidays of a list as texts, by which two lists are compared. */
const daysOf = ({ days, workingDays }: HolidayList): string[] => [
  ...days.map(({ date, name }) => `${date} ${name}`),
  ...workingDays.map((day) => `${day} worked`),
];

const rest = ({ from, until, source }: HolidayList): string => `${from} to ${until}, ${source}`;

/** The difference of two lists, in days. */
function listText(before: HolidayList | null, after: HolidayList, isWhole: boolean): string {
  if (before === null) return `${daysOf(after).length} days, ${rest(after)}`;
  const [were, are] = [daysOf(before), daysOf(after)];
  const changes = [
    ...are.filter((each) => !were.includes(each)).map((each) => `+ ${each}`),
    ...were.filter((each) => !are.includes(each)).map((each) => `- ${each}`),
    ...(rest(before) === rest(after) ? [] : [`${rest(before)} → ${rest(after)}`]),
  ];
  const shown = isWhole ? changes : changes.slice(0, 10);
  const more = changes.length - shown.length;
  return shown.join(', ') + (more > 0 ? `, and ${more} more` : '');
}

const definitionText = (value: CalendarDefinition | string | null): string =>
  value === null ? 'none' : typeof value === 'string' ? value : JSON.stringify(value);

/** A change on one line. */
function changeLine({ kind, name, before, after }: CalendarChange, isWhole: boolean): string {
  const sign = before === null ? 'new' : 'changed';
  if (after !== null && isList(after)) {
    return `${sign} ${kind} ${name}: ${listText(before as HolidayList | null, after, isWhole)}`;
  }
  const texts = [before, after] as (CalendarDefinition | string | null)[];
  const shown = before === null ? [texts[1] ?? null] : texts;
  return `${sign} ${kind} ${name}: ${shown.map(definitionText).join(' → ')}`;
}

/** The preview of a load of calendars as lines. */
const calendarLines = ({ changes }: CalendarPreview, isWhole: boolean): string[] =>
  section('Calendars', changes, (change) => changeLine(change, isWhole), { isWhole });

function printCalendar(report: CalendarReport): void {
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

/** Adds `load calendar`. */
export const addLoadCalendar = command({
  name: 'calendar',
  summary: 'publication calendars: when prices are due (docs/calendars.md)',
  description:
    'Loads holiday lists, calendars, and which price follows which calendar, from a YAML file.',
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
A file is loaded whole, in one transaction and one revision, or not at all (exit code 3); what it
does is reported first. What the file does not name stays as it is. A load is a batch of the
ledger; load undo takes it back.

Examples:
  ${PROGRAM} load calendar calendars.yaml --dry-run
  ${PROGRAM} load calendar calendars.yaml --reason "holidays of 2027"`,
  async run(file: string, options: CalendarOptions) {
    const { quiet, json: asJson } = options;
    const { withDatabase } = await import('../database.ts');
    const { loadCalendar } = await import('../../ingest/calendar/load-calendar.ts');
    const report = await withDatabase(
      ({ client, signal }) =>
        loadCalendar(client, {
          ...options,
          file,
          actor: actorOf(options),
          signal,
          onHeld: (holders) => (quiet ? undefined : reportHeld(holders)),
          onPreview(preview) {
            if (!asJson && !quiet) printAll(calendarLines(preview, options.all === true));
          },
        }),
      { quiet },
    );
    if (report.errorsTotal > 0 && !asJson) {
      process.stderr.write(`${errorLines(report).join('\n')}\n`);
    }
    return {
      data: { file, ...report },
      print: () => (quiet ? undefined : printCalendar(report)),
      exitCode: report.status === 'refused' ? EXIT.refused : EXIT.ok,
    };
  },
});
