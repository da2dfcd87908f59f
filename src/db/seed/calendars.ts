import { sql, type Transaction } from 'kysely';
import type { CalendarFile } from '../../calendar/definition.ts';
import { openRevision } from '../connection.ts';
import { countEntries } from '../ledger.ts';
import { calendarChanges, readCalendars, writeCalendars } from '../reference/calendars.ts';
import type { Database } from '../schema.ts';

type Trx = Transaction<Database>;

/** A price that may follow a sample calendar. */
interface SampleRow {
  readonly code: string;
  readonly id: number;
  /** False if it follows a calendar, or did once. */
  readonly isFree: boolean;
}

async function samplePrices(trx: Trx, mark: string): Promise<readonly SampleRow[]> {
  const { rows } = await sql<SampleRow>`
    select p.code, p.id, not exists (select from price_calendar c where c.price_id = p.id)
      and not exists (select from price_calendar_history c where c.price_id = p.id) as "isFree"
    from price p where p.specification @> ${mark}::jsonb`.execute(trx);
  return rows;
}

async function slugsEver(trx: Trx, table: 'holiday_list' | 'calendar'): Promise<Set<string>> {
  const { rows } = await sql<{ slug: string }>`
    select slug from ${sql.ref(table)}
    union select slug from ${sql.ref(`${table}_history`)}`.execute(trx);
  return new Set(rows.map(({ slug }) => slug));
}

const without = <T>(all: ReadonlyMap<string, T>, known: ReadonlySet<string>) =>
  new Map([...all].filter(([slug]) => !known.has(slug)));

/** Numbers of the entries of the sample calendars. */
interface SampleCalendarCounts {
  readonly rows: number;
  readonly inserted: number;
  readonly unchanged: number;
}

/**
 * Writes the calendars that the database never had, for sample prices that never followed one, in
 * the revision of the samples.
 * @param all the sample calendars
 * @param mark the specification of sample prices, as JSON
 * @param batch the number of the batch of the samples
 */
export async function writeSampleCalendars(
  trx: Trx,
  all: CalendarFile,
  mark: string,
  batch: number,
): Promise<SampleCalendarCounts> {
  const rows = all.holidays.size + all.calendars.size + all.prices.size;
  const samples = await samplePrices(trx, mark);
  const ids = new Map(samples.map(({ code, id }) => [code, id]));
  const current = await readCalendars(trx, null);
  const { unchanged } = calendarChanges(
    { ...all, prices: new Map([...all.prices].filter(([code]) => ids.has(code))) },
    current,
    ids,
  );
  const free = new Map(
    samples.flatMap((each) => (each.isFree ? [[each.code, each.id] as const] : [])),
  );
  const prices = new Map([...all.prices].filter(([code]) => free.has(code)));
  if (prices.size === 0) return { rows, inserted: 0, unchanged };
  const file: CalendarFile = {
    holidays: without(all.holidays, await slugsEver(trx, 'holiday_list')),
    calendars: without(all.calendars, await slugsEver(trx, 'calendar')),
    prices,
  };
  const changes = calendarChanges(file, current, free);
  await openRevision(trx, 'seeds: sample data');
  await writeCalendars(trx, changes, batch);
  const written = [...changes.holidays, ...changes.calendars, ...changes.prices];
  return { rows, inserted: countEntries(written).inserted, unchanged };
}
