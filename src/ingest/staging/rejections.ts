import { type RawBuilder, sql } from 'kysely';
import { didYouMean } from '../../catalog/nearest.ts';
import { rowsOf } from '../../db/connection.ts';
import type { Trx } from '../descriptions/known-names.ts';
import type { LoadErrorCode } from '../records/load-error.ts';
import { PROBLEMS_MAX, type Problems } from '../records/problems.ts';
import { type PointField, type PointPlaces, valuesText } from '../records/source-record.ts';
import type { ChangeTarget } from './change-set.ts';

/** A staged value, with the file's name of its price or currency. */
interface StagedRow {
  readonly line: string;
  readonly series_no: number;
  readonly name: string;
  readonly date: string;
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
  readonly place: number;
  /** The values as written in the file; null if they are stored in the same form. */
  readonly written: string | null;
}

interface Rejection {
  readonly code: LoadErrorCode;
  readonly message: string;
  readonly column: string;
  readonly value: string;
}

const COLUMNS = 'line series_no date low mid high place written'.split(' ');

const STAGED_COLUMNS = (table: string) =>
  sql`${sql.join(COLUMNS.map((column) => sql.ref(`${table}.${column}`)))}, u.name`;

/** Input of the rules that need the database. */
export interface RejectionContext {
  readonly trx: Trx;
  readonly target: ChangeTarget;
  readonly problems: Problems;
  /** Column names of values, by staged place less 1. */
  readonly places: readonly PointPlaces[];
}

/**
 * Rejects the rows of a query: all of them with a rejects file, otherwise the first are listed and
 * the rest counted.
 */
async function rejectAll<T extends StagedRow>(
  context: RejectionContext,
  query: RawBuilder<T>,
  rejectionOf: (row: T) => Rejection,
): Promise<void> {
  const { trx, problems, places } = context;
  const reject = (row: T): void => {
    const { code, message, column, value } = rejectionOf(row);
    const line = Number(row.line);
    const place = places[row.place - 1];
    const name = place ? place.nameOf(column as PointField, line) : column;
    problems.reject(code, message, { line, column: name, value });
  };
  if (problems.rejects) {
    const ordered = sql<T>`select * from (${query}) as found order by line, name, date`;
    for await (const row of rowsOf(trx, ordered)) reject(row);
    return;
  }
  const { rows } = await sql<T & { readonly total: string }>`
    select *, count(*) over () as total from (${query}) as found
    order by line, name, date limit ${PROBLEMS_MAX}`.execute(trx);
  for (const row of rows) reject(row);
  problems.countUnlisted(Number(rows[0]?.total ?? 0) - rows.length);
}

/** Rejects every row whose price or currency is neither known nor described. */
export async function rejectUnknown(
  context: RejectionContext,
  code: 'unknown_code' | 'unknown_currency',
  known: () => Promise<readonly string[]>,
): Promise<void> {
  const { trx, problems } = context;
  const unknown = await sql`
    select from pg_temp.load_series where id is null and not described and rows > 0 limit 1`;
  if ((await unknown.execute(trx)).rows.length === 0) return;
  const candidates = await known();
  const hints = new Map<string, string>();
  const what = code === 'unknown_code' ? 'No price has this code' : 'There is no such currency';
  const query = sql<StagedRow & { readonly rejected_line: string | null }>`
    select ${STAGED_COLUMNS('v')}, u.rejected_line
    from pg_temp.load_value v join pg_temp.load_series u using (series_no)
    where u.id is null and not u.described`;
  await rejectAll(context, query, ({ name, rejected_line }) => {
    const described = `, and its description in line ${rejected_line} was rejected`;
    // Suggestions compare with every name, which is slow: only the first few unknown names get one.
    const suggestion = hints.get(name) ?? (hints.size < 20 ? didYouMean(name, candidates) : '');
    if (hints.size < 20) hints.set(name, suggestion);
    const hint = rejected_line === null ? suggestion : described;
    return { code, message: `${what}${hint}`, column: 'code', value: name };
  });
  if (!problems.rejects) return;
  await sql`
    delete from pg_temp.load_value v using pg_temp.load_series u
    where u.series_no = v.series_no and u.id is null and not u.described`.execute(trx);
}

/** Rejects the values in the row of a rejected description: a row is loaded whole or not at all. */
export async function rejectUndescribed({ trx, problems }: RejectionContext): Promise<void> {
  if (!problems.rejects) return;
  const refused = await sql`
    update pg_temp.load_change c set state = 'refused' from pg_temp.load_series u
    where u.series_no = c.series_no and c.line = u.rejected_line and c.state <> 'fixed'`.execute(
    trx,
  );
  problems.rejected += Number(refused.numAffectedRows);
}

/** Rejects every second value of a series on the same date. */
export async function rejectDuplicates(context: RejectionContext): Promise<void> {
  const query = sql<StagedRow & { readonly first_line: string }>`
    select ${STAGED_COLUMNS('c')}, c.first_line
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.state = 'duplicate'`;
  await rejectAll(context, query, ({ name, date, first_line }) => ({
    code: 'duplicate',
    message: `${name} already has a value for ${date} in line ${first_line}`,
    column: 'date',
    value: date,
  }));
}

/** Rejects every day to withdraw on which the price has no value. */
export async function rejectMissing(context: RejectionContext): Promise<void> {
  const query = sql<StagedRow>`
    select ${STAGED_COLUMNS('c')}
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.state = 'missing'`;
  await rejectAll(context, query, ({ name, date }) => ({
    code: 'no_value',
    message: `${name} has no value on ${date}`,
    column: 'date',
    value: date,
  }));
}

/** A value that breaks a rule, and the first of its fields that does. */
interface FaultyRow extends StagedRow {
  readonly field: 'low' | 'mid' | 'high';
}

/** The field as written in the file; all fields if they cannot be separated. */
function partOf(row: FaultyRow): string {
  const own = row[row.field] ?? '';
  if (row.written === null) return own;
  const present = (['low', 'mid', 'high'] as const).filter((field) => row[field] !== null);
  const parts = row.written.split(' / ');
  const part = parts.length === present.length ? parts[present.indexOf(row.field)] : undefined;
  return part ?? row.written;
}

/** The place of a value in messages. A rate is in the column of its currency. */
const valuePlace = (row: FaultyRow, { target }: RejectionContext) =>
  target.covered === 'currency_id'
    ? { of: row.date, column: row.name, value: row.mid }
    : { of: `${row.name}, ${row.date},`, column: row.field, value: partOf(row) };

interface CorrectionRow extends FaultyRow {
  readonly low_before: string | null;
  readonly mid_before: string;
  readonly high_before: string | null;
}

/** Rejects every row that would change a published value. */
export async function rejectCorrections(context: RejectionContext): Promise<void> {
  const query = sql<CorrectionRow>`
    select ${STAGED_COLUMNS('c')}, c.low_before, c.mid_before, c.high_before,
      case when c.mid <> c.mid_before then 'mid'
        when c.low is distinct from c.low_before then 'low' else 'high' end as field
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.state = 'changed'`;
  await rejectAll(context, query, (row) => {
    const before = valuesText(row.low_before, row.mid_before, row.high_before);
    const value = valuesText(row.low, row.mid, row.high);
    const { of, ...place } = valuePlace(row, context);
    const change = `The value of ${of} is ${before} and would become ${value}`;
    const message = `${change}; to change it load the file with --allow-corrections and --reason`;
    return { code: 'correction_not_allowed', message, ...place };
  });
  if (!context.problems.rejects) return;
  await sql`
    update pg_temp.load_change set state = 'refused' where state = 'changed'`.execute(context.trx);
}

interface JumpRow extends FaultyRow {
  readonly neighbour_day: string;
  readonly neighbour_low: string | null;
  readonly neighbour_mid: string;
  readonly neighbour_high: string | null;
}

/** Rejects every row that `findJumps` found. */
export async function rejectJumps(context: RejectionContext, factor: string): Promise<void> {
  const query = sql<JumpRow>`
    select ${STAGED_COLUMNS('c')},
      '2000-01-01'::date + c.neighbour[4]::integer as neighbour_day,
      c.neighbour[1] as neighbour_low, c.neighbour[2] as neighbour_mid,
      c.neighbour[3] as neighbour_high,
      case when jumps(c.mid, c.neighbour[2], ${factor}::numeric) then 'mid'
        when jumps(c.low, c.neighbour[1], ${factor}::numeric) then 'low' else 'high' end as field
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.neighbour is not null`;
  await rejectAll(context, query, (row) => {
    const value = valuesText(row.low, row.mid, row.high);
    const neighbour = valuesText(row.neighbour_low, row.neighbour_mid, row.neighbour_high);
    const other =
      row.neighbour_day === row.date
        ? `its value until now, ${neighbour}`
        : `that of ${row.neighbour_day}, ${neighbour}`;
    const { of, ...place } = valuePlace(row, context);
    const message =
      `The value of ${of} is ${value}: it differs from ${other}, by more than a factor of ` +
      `${factor}; to load it use --accept-jumps`;
    return { code: 'jump', message, ...place };
  });
}

/** Deletes the rejected rows from the staging table. */
export async function dropRejected({ trx, problems }: RejectionContext): Promise<void> {
  if (!problems.rejects || problems.rejected === 0) return;
  await sql`
    delete from pg_temp.load_value v using pg_temp.load_change c
    where c.line = v.line and c.series_no = v.series_no and c.place = v.place
      and c.state in ('duplicate', 'refused')`.execute(trx);
}

/**
 * Counts the invalid staged values of a refused file, each once: values of unknown codes, values
 * beside a rejected description, and invalid values in `load_change`.
 */
export async function countFaulty(
  { trx }: Pick<RejectionContext, 'trx'>,
  mayCorrect: boolean,
): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select count(*) from (
      select v.line, v.series_no, v.place
      from pg_temp.load_value v join pg_temp.load_series u using (series_no)
      where (u.id is null and not u.described) or v.line = u.rejected_line
      union
      select line, series_no, place from pg_temp.load_change
      where state = 'duplicate' or neighbour is not null
        or (state = 'changed' and not ${mayCorrect})
    ) as faulty`.execute(trx);
  return Number(rows[0]?.count);
}
