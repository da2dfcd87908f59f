import { type RawBuilder, sql } from 'kysely';
import { didYouMean } from '../../catalog/nearest.ts';
import { rowsOf } from '../../db/connection.ts';
import type { Trx } from '../descriptions/reference.ts';
import type { LoadErrorCode } from '../records/load-error.ts';
import { PROBLEMS_MAX, type Problems } from '../records/problems.ts';
import { type PointField, type PointPlaces, valuesText } from '../records/source-record.ts';
import type { ChangeTarget } from './change-set.ts';

/** A staged value, by the name that the file gives its price or currency. */
interface StagedRow {
  readonly line: string;
  readonly series_no: number;
  readonly name: string;
  readonly date: string;
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
  readonly place: number;
  /** Its values as they stand in the file; null where they are stored so. */
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

/** What the rules that need the database work with. */
export interface RejectionContext {
  readonly trx: Trx;
  readonly target: ChangeTarget;
  readonly problems: Problems;
  /** Where values stand, by their place less 1. */
  readonly places: readonly PointPlaces[];
}

/** RejectsFile the rows of a query: all of them when they are set aside, else the first are listed. */
async function rejectAll<T extends StagedRow>(
  rules: RejectionContext,
  query: RawBuilder<T>,
  rejectionOf: (row: T) => Rejection,
): Promise<void> {
  const { trx, problems, places } = rules;
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
  problems.leftOut(Number(rows[0]?.total ?? 0) - rows.length);
}

/** RejectsFile every row whose price or currency is neither known nor described. */
export async function rejectUnknown(
  rules: RejectionContext,
  code: 'unknown_code' | 'unknown_currency',
  known: () => Promise<readonly string[]>,
): Promise<void> {
  const { trx, problems } = rules;
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
  await rejectAll(rules, query, ({ name, rejected_line }) => {
    const described = `, and its description in line ${rejected_line} was rejected`;
    // Comparing with every name is slow, so only the first few unknown ones get a suggestion.
    const offered = hints.get(name) ?? (hints.size < 20 ? didYouMean(name, candidates) : '');
    if (hints.size < 20) hints.set(name, offered);
    const hint = rejected_line === null ? offered : described;
    return { code, message: `${what}${hint}`, column: 'code', value: name };
  });
  if (!problems.rejects) return;
  await sql`
    delete from pg_temp.load_value v using pg_temp.load_series u
    where u.series_no = v.series_no and u.id is null and not u.described`.execute(trx);
}

/** Sets aside the values beside a description that was rejected: a row is taken whole. */
export async function rejectUndescribed({ trx, problems }: RejectionContext): Promise<void> {
  if (!problems.rejects) return;
  const refused = await sql`
    update pg_temp.load_change c set state = 'refused' from pg_temp.load_series u
    where u.series_no = c.series_no and c.line = u.rejected_line and c.state <> 'fixed'`.execute(
    trx,
  );
  problems.rejected += Number(refused.numAffectedRows);
}

/** RejectsFile every second mention of a price or currency on the same date. */
export async function rejectDuplicates(rules: RejectionContext): Promise<void> {
  const query = sql<StagedRow & { readonly first_line: string }>`
    select ${STAGED_COLUMNS('c')}, c.first_line
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.state = 'duplicate'`;
  await rejectAll(rules, query, ({ name, date, first_line }) => ({
    code: 'duplicate',
    message: `${name} was given for ${date} in line ${first_line} already`,
    column: 'date',
    value: date,
  }));
}

/** RejectsFile every day to be withdrawn on which its price has no value. */
export async function rejectMissing(rules: RejectionContext): Promise<void> {
  const query = sql<StagedRow>`
    select ${STAGED_COLUMNS('c')} from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.state = 'missing'`;
  await rejectAll(rules, query, ({ name, date }) => ({
    code: 'no_value',
    message: `${name} has no value on ${date}`,
    column: 'date',
    value: date,
  }));
}

/** A value that stands against a rule, and the first of its parts that does. */
interface FaultyRow extends StagedRow {
  readonly field: 'low' | 'mid' | 'high';
}

/** The part at fault as it stands in the file; all of them where the parts cannot be told apart. */
function partOf(row: FaultyRow): string {
  const own = row[row.field] ?? '';
  if (row.written === null) return own;
  const isThere = (['low', 'mid', 'high'] as const).filter((field) => row[field] !== null);
  const parts = row.written.split(' / ');
  const part = parts.length === isThere.length ? parts[isThere.indexOf(row.field)] : undefined;
  return part ?? row.written;
}

/** Where the value of a row stands, and what stands there; a rate stands under its currency. */
const valuePlace = (row: FaultyRow, { target }: RejectionContext) =>
  target.covered === 'currency_id'
    ? { of: row.date, column: row.name, value: row.mid }
    : { of: `${row.name}, ${row.date},`, column: row.field, value: partOf(row) };

interface CorrectionRow extends FaultyRow {
  readonly low_before: string | null;
  readonly mid_before: string;
  readonly high_before: string | null;
}

/** RejectsFile every row that would change a published value. */
export async function rejectCorrections(rules: RejectionContext): Promise<void> {
  const query = sql<CorrectionRow>`
    select ${STAGED_COLUMNS('c')}, c.low_before, c.mid_before, c.high_before,
      case when c.mid <> c.mid_before then 'mid'
        when c.low is distinct from c.low_before then 'low' else 'high' end as field
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.state = 'changed'`;
  await rejectAll(rules, query, (row) => {
    const before = valuesText(row.low_before, row.mid_before, row.high_before);
    const value = valuesText(row.low, row.mid, row.high);
    const { of, ...place } = valuePlace(row, rules);
    const change = `The value of ${of} is ${before} and would become ${value}`;
    const message = `${change}; to change it load the file with --allow-corrections and --reason`;
    return { code: 'correction_not_allowed', message, ...place };
  });
  if (!rules.problems.rejects) return;
  await sql`
    update pg_temp.load_change set state = 'refused' where state = 'changed'`.execute(rules.trx);
}

interface JumpRow extends FaultyRow {
  readonly day_beside: string;
  readonly low_beside: string | null;
  readonly mid_beside: string;
  readonly high_beside: string | null;
}

/** RejectsFile every row that `findJumps` found. */
export async function rejectJumps(rules: RejectionContext, factor: string): Promise<void> {
  const query = sql<JumpRow>`
    select ${STAGED_COLUMNS('c')}, '2000-01-01'::date + c.neighbour[4]::integer as day_beside,
      c.neighbour[1] as low_beside, c.neighbour[2] as mid_beside, c.neighbour[3] as high_beside,
      case when jumps(c.mid, c.neighbour[2], ${factor}::numeric) then 'mid'
        when jumps(c.low, c.neighbour[1], ${factor}::numeric) then 'low' else 'high' end as field
    from pg_temp.load_change c join pg_temp.load_series u using (series_no)
    where c.neighbour is not null`;
  await rejectAll(rules, query, (row) => {
    const value = valuesText(row.low, row.mid, row.high);
    const beside = valuesText(row.low_beside, row.mid_beside, row.high_beside);
    const other =
      row.day_beside === row.date
        ? `its value until now, ${beside}`
        : `that of ${row.day_beside}, ${beside}`;
    const { of, ...place } = valuePlace(row, rules);
    const message =
      `The value of ${of} is ${value}: it differs from ${other}, by more than a factor of ` +
      `${factor}; to load it use --accept-jumps`;
    return { code: 'jump', message, ...place };
  });
}

/** Takes the rejected rows out of what was staged, so that what is left is what is loaded. */
export async function dropRejected({ trx, problems }: RejectionContext): Promise<void> {
  if (!problems.rejects || problems.rejected === 0) return;
  await sql`
    delete from pg_temp.load_value v using pg_temp.load_change c
    where c.line = v.line and c.series_no = v.series_no and c.place = v.place
      and c.state in ('duplicate', 'refused')`.execute(trx);
}

/**
 * The number of faulty staged values of a refused file, each counted once: values of unknown codes,
 * values beside a rejected description, and values with a fault in `load_change`.
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
      where state = 'duplicate' or neighbour is not null or (state = 'changed' and not ${mayCorrect})
    ) as faulty`.execute(trx);
  return Number(rows[0]?.count);
}
