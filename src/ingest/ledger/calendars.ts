import { type RawBuilder, sql } from 'kysely';
import type { Trx } from '../descriptions/known-names.ts';
import { firstOf, type Listed } from '../staging/change-set.ts';

/*
 * Calendars and rates of VAT in the ledger: what a revision changed in their tables, and how it is
 * taken back. There are few rows, so they are not staged.
 */

/** The tables of calendars and VAT, each after those that it references, with their keys. */
const TABLES = [
  { table: 'holiday_list', key: 'id', kind: 'holidays' },
  { table: 'calendar', key: 'id', kind: 'calendar' },
  { table: 'price_calendar', key: 'price_id', kind: 'price' },
  { table: 'vat_rate', key: 'id', kind: 'vat' },
] as const;
type CalendarTable = (typeof TABLES)[number];

const history = (table: string): RawBuilder<unknown> => sql.ref(`${table}_history`);

/** The keys of rows that a revision began or ended, as the column `key`. */
const keysIn = ({ table, key }: CalendarTable, revision: string): RawBuilder<unknown> => sql`
  select ${sql.ref(key)} as key from ${sql.ref(table)} where revision = ${revision}::bigint
  union select ${sql.ref(key)} from ${history(table)}
    where ${revision}::bigint in (revision, revision_to)`;

/** The revisions that began or ended a row of a key. @param key expression for the key */
const revisionsOf = (
  { table, key }: CalendarTable,
  value: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`
  select t.revision from ${sql.ref(table)} t where t.${sql.ref(key)} = ${value}
  union select t.revision from ${history(table)} t where t.${sql.ref(key)} = ${value}
  union select t.revision_to from ${history(table)} t where t.${sql.ref(key)} = ${value}`;

/** Later changes of the same rows. */
const laterRows = (each: CalendarTable, revision: string): RawBuilder<unknown> => sql`
  select later.revision from (${keysIn(each, revision)}) as own
    cross join lateral (${revisionsOf(each, sql`own.key`)}) as later
  where later.revision > ${revision}::bigint`;

/**
 * True if the undo removes a row: the revision added it. Later changes that were undone may have
 * written the row again.
 */
const isAdded = ({ table, key }: CalendarTable, row: string, revision: string) => {
  const versions = sql`select from ${history(table)} h
    where h.${sql.ref(key)} = ${sql.ref(`${row}.${key}`)}`;
  return sql`
    (${sql.ref(`${row}.revision`)} = ${revision}::bigint
      or exists (${versions} and h.revision = ${revision}::bigint))
    and not exists (${versions} and h.revision_to = ${revision}::bigint)`;
};

const [LISTS, CALENDARS, FOLLOWERS, VAT_RATES] = TABLES;

/** Later rows that refer to rows which the undo removes: calendars, prices, and their followers. */
const laterReferences = (revision: string): RawBuilder<unknown> => sql`
  select c.revision from calendar c join holiday_list l on l.id = c.holiday_list_id
    where c.revision > ${revision}::bigint and ${isAdded(LISTS, 'l', revision)}
  union
  select f.revision from price_calendar f join calendar c on c.id = f.calendar_id
    where f.revision > ${revision}::bigint and ${isAdded(CALENDARS, 'c', revision)}
  union
  select f.revision from price_calendar f
    where f.revision > ${revision}::bigint
      and f.price_id in (select prices_made_in(${revision}::bigint))`;

/** The earlier rows of a revision's changes, to which the undo returns. */
const earlierRows = ({ table }: CalendarTable, revision: string): RawBuilder<unknown> =>
  sql`(select * from ${history(table)} where revision_to = ${revision}::bigint)`;

/** The revisions that removed rows to which earlier rows refer, unless the undo restores them. */
const lostReferences = (revision: string): RawBuilder<unknown> => {
  const lost = (
    rows: RawBuilder<unknown>,
    column: string,
    target: string,
  ): RawBuilder<unknown> => sql`
    select g.revision_to as revision from ${rows} as e
      join ${history(target)} g on g.id = ${sql.ref(`e.${column}`)}
    where g.revision_to > ${revision}::bigint
      and not exists (select from ${sql.ref(target)} t where t.id = g.id)`;
  return sql`
    ${lost(earlierRows(CALENDARS, revision), 'holiday_list_id', 'holiday_list')}
    union ${lost(earlierRows(FOLLOWERS, revision), 'calendar_id', 'calendar')}
    union ${lost(earlierRows(FOLLOWERS, revision), 'price_id', 'price')}`;
};

/** The revisions that added a rate of VAT of a country and day that the undo restores. */
const takenVatRates = (revision: string): RawBuilder<unknown> => sql`
  select least(v.revision, (select min(h.revision) from vat_rate_history h where h.id = v.id))
    as revision
  from vat_rate v join ${earlierRows(VAT_RATES, revision)} as was
    on was.country = v.country and was.valid_from = v.valid_from and was.id <> v.id`;

/** The later revisions that depend on the changes of calendars and VAT of a revision. */
export const laterCalendars = (revision: string): RawBuilder<unknown> =>
  sql.join(
    [
      ...TABLES.map((each) => laterRows(each, revision)),
      laterReferences(revision),
      lostReferences(revision),
      takenVatRates(revision),
    ],
    sql` union `,
  );

/** One row of calendars or VAT before and after a revision. */
export interface CalendarRowChange {
  readonly kind: string;
  readonly name: string;
  readonly before: Readonly<Record<string, unknown>> | string | null;
  readonly after: Readonly<Record<string, unknown>> | string | null;
}

/** A row without its key and metadata, as JSON; a follower is the slug of its calendar. */
const shownRow = ({ table }: CalendarTable, row: string): RawBuilder<unknown> =>
  table === 'price_calendar'
    ? sql`(select to_jsonb(c.slug) from (select id, slug from calendar
        union select id, slug from calendar_history) as c
        where c.id = ${sql.ref(`${row}.calendar_id`)} limit 1)`
    : sql`case when ${sql.ref(`${row}.id`)} is not null then to_jsonb(${sql.ref(row)})
        - array['id', 'slug', 'country', 'valid_from', 'batch_id', 'revision', 'revision_to']
        end`;

function nameOf({ table }: CalendarTable): RawBuilder<unknown> {
  if (table === 'vat_rate') {
    return sql`concat_ws(' ', coalesce(became.country, was.country),
      coalesce(became.valid_from, was.valid_from))`;
  }
  if (table !== 'price_calendar') return sql`coalesce(became.slug, was.slug)`;
  return sql`(select p.code from (select id, code from price
    union select id, code from price_history) as p
    where p.id = coalesce(became.price_id, was.price_id) limit 1)`;
}

const changesIn = (each: CalendarTable, revision: string): RawBuilder<unknown> => {
  const { table, key, kind } = each;
  const rows = sql`(select t.*, null::bigint as revision_to from ${sql.ref(table)} t
      where t.revision = ${revision}::bigint
    union all select t.* from ${history(table)} t where t.revision = ${revision}::bigint)`;
  return sql`
    select ${sql.lit(kind)} as kind, ${nameOf(each)} as name, ${shownRow(each, 'was')} as before,
      ${shownRow(each, 'became')} as after
    from ${rows} as became full join ${earlierRows(each, revision)} as was using (${sql.ref(key)})`;
};

/** The changes of calendars in a revision. */
const calendarsIn = (revision: string): RawBuilder<CalendarRowChange> => sql<CalendarRowChange>`
  ${sql.join(
    TABLES.map((each) => changesIn(each, revision)),
    sql` union all `,
  )}`;

/** The query of the changes of calendars, sorted. */
export const shownCalendars = (revision: string): RawBuilder<CalendarRowChange> =>
  sql<CalendarRowChange>`
    select * from (${calendarsIn(revision)}) as changes order by kind, name collate "C"`;

/** A holiday list, a calendar, a price whose calendar an undo changes, or a rate of VAT. */
export interface UndoneCalendar {
  readonly kind: string;
  readonly name: string;
}

/** The effects of an undo on calendars and rates of VAT, by the row after it. */
export interface UndoneCalendars {
  /** Rows that the revision added. */
  readonly calendarsRemoved: Listed<UndoneCalendar>;
  readonly vatRatesRemoved: Listed<UndoneCalendar>;
  /** Rows that the revision changed. */
  readonly calendarsAsBefore: Listed<UndoneCalendar>;
  readonly vatRatesAsBefore: Listed<UndoneCalendar>;
  /** Rows that the revision removed. */
  readonly calendarsRestored: Listed<UndoneCalendar>;
  readonly vatRatesRestored: Listed<UndoneCalendar>;
}

const REMOVED = sql`before is null`;
const AS_BEFORE = sql`before is not null and after is not null`;
const RESTORED = sql`after is null`;

/**
 * @param revision null if the batch changed nothing
 * @param most null for all rows
 */
export async function previewCalendars(
  trx: Trx,
  revision: string | null,
  most: number | null,
): Promise<UndoneCalendars> {
  const of = (effect: RawBuilder<unknown>, isVat: boolean): Promise<Listed<UndoneCalendar>> =>
    firstOf(
      trx,
      sql<UndoneCalendar>`
        select kind, name from (${calendarsIn(revision ?? '0')}) as changes
        where ${effect} and (kind = 'vat') = ${isVat}`,
      most,
    );
  return {
    calendarsRemoved: await of(REMOVED, false),
    calendarsAsBefore: await of(AS_BEFORE, false),
    calendarsRestored: await of(RESTORED, false),
    vatRatesRemoved: await of(REMOVED, true),
    vatRatesAsBefore: await of(AS_BEFORE, true),
    vatRatesRestored: await of(RESTORED, true),
  };
}

async function columnsOf(trx: Trx, { table }: CalendarTable): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = to_regclass(${table}) and attnum > 0 and not attisdropped
      and attname <> 'revision'
    order by attnum`.execute(trx);
  return rows.map(({ name }) => name);
}

/**
 * Takes the changes of calendars of a revision back, in the open revision. Restored rows have their
 * original batch numbers.
 */
export async function undoCalendars(trx: Trx, revision: string): Promise<void> {
  for (const each of TABLES) {
    const { table, key } = each;
    const columns = await columnsOf(trx, each);
    const list = sql.join(columns.map((name) => sql.ref(name)));
    const were = sql.join(columns.map((name) => sql.ref(`was.${name}`)));
    const others = columns.filter((name) => name !== key);
    await sql`
      update ${sql.ref(table)} t
        set (${sql.join(others.map((name) => sql.ref(name)))})
          = row(${sql.join(others.map((name) => sql.ref(`was.${name}`)))})
      from ${earlierRows(each, revision)} as was
      where was.${sql.ref(key)} = t.${sql.ref(key)}`.execute(trx);
    await sql`
      insert into ${sql.ref(table)} (${list}) overriding system value
      select ${were} from ${earlierRows(each, revision)} as was
      where not exists (select from ${sql.ref(table)} t
        where t.${sql.ref(key)} = was.${sql.ref(key)})`.execute(trx);
  }
  for (const each of TABLES.toReversed()) {
    await sql`
      delete from ${sql.ref(each.table)} t where ${isAdded(each, 't', revision)}`.execute(trx);
  }
}
