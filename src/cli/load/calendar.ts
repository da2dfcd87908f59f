import type { CalendarDefinition, HolidayList } from '../../calendar/definition.ts';
import type { CalendarChange } from '../../ingest/calendar/load-calendar.ts';
import { referenceCommand } from './reference-file.ts';

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

/** Adds `load calendar`. */
export const addLoadCalendar = referenceCommand<CalendarChange>({
  name: 'calendar',
  summary: 'publication calendars: when prices are due (docs/calendars.md)',
  description:
    'Loads holiday lists, calendars, and which price follows which calendar, from a YAML file.',
  stays: 'Entries that the file does not name stay.',
  examples: ['calendars.yaml --dry-run', 'calendars.yaml --reason "holidays of 2027"'],
  heading: 'Calendars',
  line: changeLine,
  load: async () => (await import('../../ingest/calendar/load-calendar.ts')).loadCalendar,
});
