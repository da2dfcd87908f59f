import {
  type CalendarDefinition,
  type CalendarFile,
  checkCalendarFile,
  type HolidayList,
} from '../../calendar/definition.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import type { Client } from '../../db/client.ts';
import {
  type CalendarChanges,
  type CalendarRows,
  calendarChanges,
  readCalendars,
  writeCalendars,
} from '../../db/reference/calendars.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { codesOf } from '../load/classify.ts';
import {
  type EntryChange,
  loadReferenceFile,
  type ReferenceKind,
  type ReferenceReport,
  type ReferenceRequest,
  type ReportFault,
} from '../load/reference-file.ts';

/*
 * Loads of publication calendars. A file states holiday lists, calendars, and which price follows
 * which; entries of the database that it does not name stay.
 */

/** One changed entry. Without `after` the price follows none now. */
export interface CalendarChange extends EntryChange<HolidayList | CalendarDefinition | string> {
  readonly kind: 'holidays' | 'calendar' | 'price';
  /** Slug of a holiday list or calendar, code of a price. */
  readonly name: string;
}

export type CalendarRequest = ReferenceRequest<CalendarChange>;
export type CalendarReport = ReferenceReport<CalendarChange>;

/** A calendar file whose entries have no faults. */
interface CheckedFile {
  readonly file: CalendarFile;
  /** The names of its holiday lists and calendars, of those with faults too. */
  readonly named: Readonly<Record<'holidays' | 'calendars', readonly string[]>>;
}

/** The changes as one list: holiday lists, then calendars, then prices. */
const listOf = ({ holidays, calendars, prices }: CalendarChanges): readonly CalendarChange[] => [
  ...holidays.map((each) => ({ kind: 'holidays' as const, ...each })),
  ...calendars.map((each) => ({ kind: 'calendar' as const, ...each })),
  ...prices.map(({ priceId: _, ...each }) => ({ kind: 'price' as const, ...each })),
];

/** Most unknown codes with suggestions: each is compared with the codes of all prices. */
const SUGGESTIONS_MAX = 20;

/** The ids of the prices that the file names, by their codes in it. Reports unknown codes. */
async function priceIds(
  trx: Trx,
  { file }: CheckedFile,
  report: ReportFault,
): Promise<ReadonlyMap<string, number>> {
  const ids = new Map<string, number>();
  if (file.prices.size === 0) return ids;
  const codes = new Map([...file.prices.keys()].map((code) => [code, matchKey(code)]));
  const rows = await trx
    .selectFrom('price')
    .select(['id', 'code_key'])
    .where('code_key', 'in', [...new Set(codes.values())])
    .execute();
  const known = new Map(rows.map(({ code_key, id }) => [code_key, id]));
  let names: readonly string[] | null = null;
  let suggestions = SUGGESTIONS_MAX;
  const seen = new Set<string>();
  for (const [code, key] of codes) {
    const id = known.get(key);
    const pointer = `/prices/${code.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (id === undefined) {
      names ??= await codesOf(trx);
      const hint = suggestions > 0 ? didYouMean(code, names) : '';
      suggestions -= 1;
      report('unknown_code', `No price has this code${hint}`, pointer, code);
    } else if (seen.has(key)) {
      report(
        'duplicate',
        'The price is named twice; codes differ by more than case',
        pointer,
        code,
      );
    } else ids.set(code, id);
    seen.add(key);
  }
  return ids;
}

/** Reports names of holiday lists and calendars that neither the file nor the database has. */
function checkNames({ file, named }: CheckedFile, rows: CalendarRows, report: ReportFault): void {
  const lists = new Set([...rows.lists.map(({ slug }) => slug), ...named.holidays]);
  for (const [slug, { holidays }] of file.calendars) {
    if (holidays === null || lists.has(holidays)) continue;
    const hint = didYouMean(holidays, lists);
    const message = `No holiday list has this name${hint}`;
    report('unknown_holidays', message, `/calendars/${slug}/holidays`, holidays);
  }
  const calendars = new Set([...rows.calendars.map(({ slug }) => slug), ...named.calendars]);
  for (const [code, calendar] of file.prices) {
    if (calendar === null || calendars.has(calendar)) continue;
    const pointer = `/prices/${code.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const hint = didYouMean(calendar, calendars);
    report('unknown_calendar', `No calendar has this name${hint}`, pointer, calendar);
  }
}

const CALENDARS: ReferenceKind<CheckedFile, CalendarChange> = {
  format: 'calendar',
  /** 20,000 prices and a century of holidays take less than half of it. */
  file: { name: 'calendar file', bytesMax: 2_097_152 },
  emptyMessage: 'The file states no holidays, calendars or prices',
  read(value, report) {
    const { file, faults } = checkCalendarFile(value);
    for (const { pointer, message } of faults) report('invalid_calendar', message, pointer);
    const isEmpty = file.holidays.size + file.calendars.size + file.prices.size === 0;
    if (faults.length === 0 && isEmpty) return null;
    const namesIn = (section: string): readonly string[] =>
      Object.keys((value as Readonly<Record<string, object | undefined>>)[section] ?? {});
    const named = { holidays: namesIn('holidays'), calendars: namesIn('calendars') };
    return { file, named };
  },
  async compare(trx, checked, report) {
    const current = await readCalendars(trx, null);
    const ids = await priceIds(trx, checked, report);
    checkNames(checked, current, report);
    const changes = calendarChanges(checked.file, current, ids);
    const { unchanged } = changes;
    const write = (trx: Trx, batch: number) => writeCalendars(trx, changes, batch);
    return { changes: listOf(changes), unchanged, write };
  },
};

/**
 * Loads a calendar file, see `loadReferenceFile`. Entries of the database that the file does not
 * name stay.
 */
export const loadCalendar = (client: Client, request: CalendarRequest): Promise<CalendarReport> =>
  loadReferenceFile(client, CALENDARS, request);
