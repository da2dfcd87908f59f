import { isDeepStrictEqual } from 'node:util';
import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import type { CalendarDefinition, CalendarFile, HolidayList } from '../../calendar/definition.ts';
import { numberIn, requireCommit } from '../revisions.ts';
import type { Database } from '../schema.ts';

/*
 * Publication calendars in the database: three versioned tables. A file states some of their rows
 * (`src/calendar/definition.ts`); the others stay.
 */

type Trx = Transaction<Database>;

interface ListRow extends HolidayList {
  readonly id: number;
  readonly slug: string;
  readonly revision: number;
}

interface CalendarRow extends Omit<CalendarDefinition, 'holidays'> {
  readonly id: number;
  readonly slug: string;
  readonly revision: number;
  readonly listId: number | null;
}

interface FollowerRow {
  readonly priceId: number;
  readonly calendarId: number;
  readonly revision: number;
}

/** All calendars at a revision. */
export interface CalendarRows {
  readonly lists: readonly ListRow[];
  readonly calendars: readonly CalendarRow[];
  readonly followers: readonly FollowerRow[];
}

/** The columns of a holiday list, as members. */
const LIST = sql`id, slug, source, known_from as "from", known_until as until, days,
  working_days as "workingDays", revision::float8 as revision`;
const CALENDAR = sql`id, slug, rule, due_time as at, zone, holiday_list_id as "listId", policy,
  make_up_days as "makeUpDays", revision::float8 as revision`;
const FOLLOWER = sql`price_id as "priceId", calendar_id as "calendarId",
  revision::float8 as revision`;

type Table = 'holiday_list' | 'calendar' | 'price_calendar';

/** PostgreSQL does not preserve the member order of a jsonb object. */
const listOf = ({ days, ...row }: ListRow): ListRow => ({
  ...row,
  days: days.map(({ date, name }) => ({ date, name })),
});

/**
 * Reads all calendars.
 * @param revision the server must have its commit, see `requireCommit`; null for the current rows
 */
export async function readCalendars(
  db: Kysely<Database>,
  revision: string | null,
): Promise<CalendarRows> {
  const rowsOf = <Row>(table: Table, columns: RawBuilder<unknown>) =>
    revision === null
      ? sql<Row>`select ${columns} from ${sql.ref(table)}`
      : sql<Row>`select ${columns} from ${sql.raw(`${table}_at`)}(${numberIn(revision)})
          where ${requireCommit(revision)}`;
  const [lists, calendars, followers] = await Promise.all([
    rowsOf<ListRow>('holiday_list', LIST).execute(db),
    rowsOf<CalendarRow>('calendar', CALENDAR).execute(db),
    rowsOf<FollowerRow>('price_calendar', FOLLOWER).execute(db),
  ]);
  return {
    lists: lists.rows.map(listOf),
    calendars: calendars.rows,
    followers: followers.rows,
  };
}

/** The definition of a row, as a file states it. */
export function definitionOf(
  { id: _id, slug: _slug, revision: _revision, listId, ...definition }: CalendarRow,
  slugs: ReadonlyMap<number, string>,
): CalendarDefinition {
  return { ...definition, holidays: listId === null ? null : (slugs.get(listId) ?? null) };
}

/** The holiday list of a row, as a file states it. */
export const holidayListOf = ({
  id: _id,
  slug: _slug,
  revision: _revision,
  ...list
}: ListRow): HolidayList => list;

/** A row that a file adds or changes, or the end of a row. */
interface Change<T> {
  /** Slug of a holiday list or calendar, code of a price. */
  readonly name: string;
  readonly before: T | null;
  readonly after: T | null;
}

/** The changes that a file makes. */
export interface CalendarChanges {
  readonly holidays: readonly Change<HolidayList>[];
  readonly calendars: readonly Change<CalendarDefinition>[];
  /** The calendars of prices, by their slugs. */
  readonly prices: readonly (Change<string> & { readonly priceId: number })[];
  /** Entries of the file that the database has already. */
  readonly unchanged: number;
}

/** Compares entries of a file with the rows of their names. */
function compared<T>(stated: ReadonlyMap<string, T>, current: ReadonlyMap<string, T>): Change<T>[] {
  return [...stated].flatMap(([name, after]) => {
    const before = current.get(name) ?? null;
    return isDeepStrictEqual(before, after) ? [] : [{ name, before, after }];
  });
}

/**
 * The changes that a file makes in the current rows. Entries that the file does not name stay.
 * @param priceIds the id of each price that the file names, by its code in the file
 */
export function calendarChanges(
  file: CalendarFile,
  { lists, calendars, followers }: CalendarRows,
  priceIds: ReadonlyMap<string, number>,
): CalendarChanges {
  const listSlugs = new Map(lists.map(({ id, slug }) => [id, slug]));
  const slugs = new Map(calendars.map(({ id, slug }) => [id, slug]));
  const followed = new Map(followers.map((each) => [each.priceId, slugs.get(each.calendarId)]));
  const holidays = compared(
    file.holidays,
    new Map(lists.map((row) => [row.slug, holidayListOf(row)])),
  );
  const changed = compared(
    file.calendars,
    new Map(calendars.map((row) => [row.slug, definitionOf(row, listSlugs)])),
  );
  const prices = [...file.prices].flatMap(([name, after]) => {
    const priceId = priceIds.get(name);
    if (priceId === undefined) return [];
    const before = followed.get(priceId) ?? null;
    return before === after ? [] : [{ name, priceId, before, after }];
  });
  const stated = file.holidays.size + file.calendars.size + file.prices.size;
  const count = holidays.length + changed.length + prices.length;
  return { holidays, calendars: changed, prices, unchanged: stated - count };
}

async function idsOf(
  trx: Trx,
  table: 'holiday_list' | 'calendar',
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await sql<{ slug: string; id: number }>`
    select slug, id from ${sql.ref(table)}`.execute(trx);
  return new Map(rows.map(({ slug, id }) => [slug, id]));
}

const needed = (ids: ReadonlyMap<string, number>, slug: string): number => {
  const id = ids.get(slug);
  if (id === undefined) throw new Error(`there is no "${slug}"`);
  return id;
};

const json = (value: unknown): RawBuilder<unknown> => sql`${JSON.stringify(value)}::jsonb`;

async function writeLists(trx: Trx, { holidays }: CalendarChanges, batch: number): Promise<void> {
  for (const { name, after } of holidays) {
    if (after === null) continue;
    const { source, from, until, days, workingDays } = after;
    await sql`
      insert into holiday_list (slug, source, known_from, known_until, days, working_days, batch_id)
      values (${name}, ${source}, ${from}, ${until}, ${json(days)}, ${json(workingDays)}, ${batch})
      on conflict (slug) do update set (source, known_from, known_until, days, working_days,
          batch_id) = row(excluded.source, excluded.known_from, excluded.known_until,
          excluded.days, excluded.working_days, excluded.batch_id)`.execute(trx);
  }
}

async function writeDefinitions(
  trx: Trx,
  { calendars }: CalendarChanges,
  batch: number,
): Promise<void> {
  const lists = await idsOf(trx, 'holiday_list');
  for (const { name, after } of calendars) {
    if (after === null) continue;
    const { rule, at, zone, holidays, policy, makeUpDays } = after;
    const list = holidays === null ? null : needed(lists, holidays);
    await sql`
      insert into calendar (slug, rule, due_time, zone, holiday_list_id, policy, make_up_days,
        batch_id)
      values (${name}, ${json(rule)}, ${at}, ${zone}, ${list}, ${policy}, ${makeUpDays}, ${batch})
      on conflict (slug) do update set (rule, due_time, zone, holiday_list_id, policy,
          make_up_days, batch_id) = row(excluded.rule, excluded.due_time, excluded.zone,
          excluded.holiday_list_id, excluded.policy, excluded.make_up_days,
          excluded.batch_id)`.execute(trx);
  }
}

async function writeFollowers(trx: Trx, { prices }: CalendarChanges, batch: number): Promise<void> {
  const calendars = await idsOf(trx, 'calendar');
  const gone = prices.filter(({ after }) => after === null).map(({ priceId }) => priceId);
  const kept = prices.flatMap(({ priceId, after }) =>
    after === null ? [] : [{ price_id: priceId, calendar_id: needed(calendars, after) }],
  );
  if (gone.length > 0) {
    await sql`delete from price_calendar where price_id = any(${gone}::int[])`.execute(trx);
  }
  if (kept.length === 0) return;
  await sql`
    insert into price_calendar (price_id, calendar_id, batch_id)
    select price_id, calendar_id, ${batch}::integer
    from jsonb_to_recordset(${JSON.stringify(kept)}::jsonb)
      as kept (price_id integer, calendar_id integer)
    on conflict (price_id) do update
      set (calendar_id, batch_id) = row(excluded.calendar_id, excluded.batch_id)`.execute(trx);
}

/** Writes changes in the open revision. @param batch the number of the batch that makes them */
export async function writeCalendars(
  trx: Trx,
  changes: CalendarChanges,
  batch: number,
): Promise<void> {
  await writeLists(trx, changes, batch);
  await writeDefinitions(trx, changes, batch);
  await writeFollowers(trx, changes, batch);
}
