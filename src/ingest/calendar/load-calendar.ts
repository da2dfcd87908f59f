import { createHash } from 'node:crypto';
import type { CalendarDefinition, HolidayList } from '../../calendar/definition.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import {
  type CalendarChanges,
  type CalendarRows,
  calendarChanges,
  countChanges,
  readCalendars,
  writeCalendars,
} from '../../db/calendars.ts';
import type { Client } from '../../db/client.ts';
import { type Connection, openRevision, withSession } from '../../db/connection.ts';
import { type LoadCounts, NO_COUNTS, nextBatch, writeBatch } from '../../db/ledger.ts';
import { textOf } from '../../db/revisions.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { withLockOrSnapshot } from '../load/apply.ts';
import { earlierBatch } from '../load/batches.ts';
import { codesOf } from '../load/classify.ts';
import type { ChangeRequest, LoadReport } from '../load/request.ts';
import { type LoadProblem, problemOf } from '../records/load-error.ts';
import { Problems } from '../records/problems.ts';
import { openSource, type SourceFile } from '../records/source-file.ts';
import type { Listed } from '../staging/change-set.ts';
import { type PlacedCalendarFile, readCalendarFile } from './calendar-file.ts';

/*
 * A load of publication calendars: `calendar-file.ts` reads the file, this file compares it with
 * the database and writes the changes. There are few rows, so they are not staged.
 */

/** The format of these batches in the ledger. */
const CALENDAR_FORMAT = 'calendar';

/** One changed entry. Without `before` it is new; without `after` the price follows none now. */
export interface CalendarChange {
  readonly kind: 'holidays' | 'calendar' | 'price';
  /** Slug of a holiday list or calendar, code of a price. */
  readonly name: string;
  readonly before: HolidayList | CalendarDefinition | string | null;
  readonly after: HolidayList | CalendarDefinition | string | null;
}

/** The changes that a load will make, reported before they are written. */
export interface CalendarPreview {
  /** Holiday lists, then calendars, then prices, in the order of the file. */
  readonly changes: Listed<CalendarChange>;
  readonly unchanged: number;
}

export interface CalendarRequest extends Omit<ChangeRequest<CalendarPreview>, 'reason'> {
  /** Path of the file. */
  readonly file: string;
  readonly reason?: string | undefined;
}

/** Result of a load, as of every other format. `counts.rows` are entries of the file. */
export interface CalendarReport
  extends Pick<LoadReport, 'status' | 'batch' | 'revision' | 'errorsTotal'> {
  readonly counts: LoadCounts;
  readonly errors: readonly (LoadProblem & { readonly file: string })[];
  readonly preview: CalendarPreview | null;
}

/** The changes as one list. */
const previewOf = ({
  holidays,
  calendars,
  prices,
  unchanged,
}: CalendarChanges): CalendarPreview => {
  const all: CalendarChange[] = [
    ...holidays.map((each) => ({ kind: 'holidays' as const, ...each })),
    ...calendars.map((each) => ({ kind: 'calendar' as const, ...each })),
    ...prices.map(({ priceId: _, ...each }) => ({ kind: 'price' as const, ...each })),
  ];
  return { changes: { total: all.length, shown: all }, unchanged };
};

/** Most unknown codes with suggestions: each is compared with the codes of all prices. */
const SUGGESTIONS_MAX = 20;

/** The ids of the prices that the file names, by their codes in it. Reports unknown codes. */
async function priceIds(
  trx: Trx,
  { file, report }: PlacedCalendarFile,
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
function checkNames({ file, named, report }: PlacedCalendarFile, rows: CalendarRows): void {
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

/** A load whose file was read. */
interface ReadLoad {
  readonly request: CalendarRequest;
  readonly source: SourceFile;
  readonly placed: PlacedCalendarFile;
  readonly problems: Problems;
  readonly sha256: Buffer;
  readonly startedAt: string;
  readonly reason: string | null;
}

/** Rolls the transaction back; the problems of the load state why. */
class CalendarRefused extends Error {
  override readonly name = 'CalendarRefused';
}

const entryOf = ({ request, source, sha256, startedAt, reason }: ReadLoad, counts: LoadCounts) => ({
  format: CALENDAR_FORMAT,
  fileName: source.name,
  sha256,
  mappingSha256: null,
  vintage: null,
  actor: request.actor,
  reason,
  startedAt,
  counts,
});

const reportOf = (
  status: CalendarReport['status'],
  { source, problems }: Pick<ReadLoad, 'source' | 'problems'>,
  outcome: Partial<CalendarReport> = {},
): CalendarReport => ({
  status,
  batch: null,
  revision: null,
  counts: NO_COUNTS,
  errors: problems.inOrder().map((problem) => ({ file: source.path, ...problem })),
  errorsTotal: problems.total,
  preview: null,
  ...outcome,
});

/** Compares the file with the database, and writes its changes in one revision. */
async function apply(trx: Trx, load: ReadLoad): Promise<CalendarReport> {
  const { request, placed, problems, source, sha256 } = load;
  const current = await readCalendars(trx, null);
  const ids = await priceIds(trx, placed);
  checkNames(placed, current);
  if (problems.refuses) throw new CalendarRefused();
  const changes = calendarChanges(placed.file, current, ids);
  const preview = previewOf(changes);
  const earlier = await earlierBatch(trx, { sha256, formatName: CALENDAR_FORMAT, format: {} });
  if (earlier && preview.changes.total === 0 && !request.dryRun) {
    return reportOf('already-loaded', load, { batch: earlier.id });
  }
  await request.onPreview?.(preview);
  const changed = countChanges(changes);
  const { unchanged } = changes;
  const rows = unchanged + changed.inserted + changed.corrected + changed.withdrawn;
  const counts = { ...NO_COUNTS, ...changed, rows, unchanged };
  if (request.dryRun) return reportOf('previewed', load, { counts, preview });
  const why = load.reason ?? `load ${CALENDAR_FORMAT} ${source.name}`;
  const number = preview.changes.total === 0 ? null : await openRevision(trx, why);
  const batch = await nextBatch(trx);
  await writeCalendars(trx, changes, batch);
  // An earlier file may be loaded again to take a later one back. The ledger holds a file once, so
  // this is the file together with the batch that it follows.
  const mappingSha256 = earlier
    ? createHash('sha256')
        .update(`after ${batch - 1}`)
        .digest()
    : null;
  await writeBatch(trx, batch, 'applied', number, { ...entryOf(load, counts), mappingSha256 });
  const revision = number === null ? null : await textOf(trx, number);
  const status = number === null ? 'unchanged' : 'applied';
  return reportOf(status, load, { batch, revision, counts, preview });
}

/** Records a refused load in the ledger, in a transaction of its own. A dry run is not recorded. */
async function refuse({ db }: Connection, load: ReadLoad): Promise<CalendarReport> {
  const record = async (trx: Trx): Promise<number> => {
    const batch = await nextBatch(trx);
    await writeBatch(trx, batch, 'refused', null, entryOf(load, NO_COUNTS));
    return batch;
  };
  const batch = load.request.dryRun ? null : await db.transaction().execute(record);
  return reportOf('refused', load, { batch });
}

async function readLoad(
  { driver }: Connection,
  request: CalendarRequest,
  source: SourceFile,
): Promise<ReadLoad> {
  const problems = new Problems();
  const { rows } = await driver.query<{ now: string }>('select clock_timestamp() as now');
  const sha256 = await source.sha256(request.signal);
  const placed = await readCalendarFile(source, problems);
  if (!(await source.sha256(request.signal)).equals(sha256)) {
    const message = 'The file was changed while it was read: load it again';
    problems.refuse(problemOf('file_changed', message, {}));
  }
  const reason = request.reason?.trim() || null;
  return { request, source, placed, problems, sha256, startedAt: rows[0]?.now ?? '', reason };
}

/**
 * Loads a calendar file completely, in one transaction and one revision, or not at all. Entries of
 * the database that the file does not name stay. Every load is recorded in `load_batch`, including
 * refused ones, except dry runs.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing has
 *   changed then
 */
export async function loadCalendar(
  client: Client,
  request: CalendarRequest,
): Promise<CalendarReport> {
  request.signal?.throwIfAborted();
  const source = await openSource(request.file);
  try {
    return await withSession(client, request.signal, async (connection) => {
      const load = await readLoad(connection, request, source);
      // A file with faults is still compared, so that all unknown names are reported with them.
      return withLockOrSnapshot(connection, request, (trx) => apply(trx, load)).catch(
        (error: unknown) => {
          if (error instanceof CalendarRefused) return refuse(connection, load);
          throw error;
        },
      );
    });
  } finally {
    await source.close();
  }
}
