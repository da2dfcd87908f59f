import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sql } from 'kysely';
import type { PoolClient } from 'pg';
import { from } from 'pg-copy-streams';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import type { SourceFile } from '../file.ts';
import { type CsvRow, csvRows } from '../parsing/csv-rows.ts';
import { isDay } from '../parsing/dates.ts';
import type { Trx } from '../reference.ts';
import {
  type LoadErrorCode,
  PROBLEMS_MAX,
  type Problems,
  problemOf,
  Refusal,
} from '../rejects/problems.ts';
import { copyEscaped } from '../staging/stage-tables.ts';
import { isCode } from '../subjects.ts';

/** The points to be withdrawn: those of a price, or what a CSV file of code and date names. */
export type Selection =
  | { readonly file: string }
  | {
      readonly code: string;
      /** These days; each has to have a value. */
      readonly dates: readonly string[];
    }
  | {
      readonly code: string;
      /** The days from one to another; null for no bound. */
      readonly from: string | null;
      readonly to: string | null;
    };

/** A point that is named: the line of the file, or 0 for one of the command line. */
interface NamedPoint {
  readonly line: number;
  readonly code: string;
  readonly date: string;
}

/** Positions of the two columns. */
interface Layout {
  readonly code: number;
  readonly date: number;
}

/** @throws Refusal for other columns than these two: a file of values is for loading */
function layoutOf({ line, fields }: CsvRow): Layout {
  const code = fields.indexOf('code');
  const date = fields.indexOf('date');
  if (fields.length === 2 && code >= 0 && date >= 0) return { code, date };
  const message = 'The file has to have the columns code and date, and no others';
  const value = fields.join(',');
  throw new Refusal(value === '' ? 'missing_column' : 'unknown_column', message, { line, value });
}

/** Notes what is wrong with a code or a day. */
function isRight({ line, code, date }: NamedPoint, problems: Problems): boolean {
  const place = line === 0 ? {} : { line };
  if (!isCode(code)) {
    const message = 'A code has 1 to 64 visible ASCII characters';
    problems.reject('invalid_code', message, { ...place, column: 'code', value: code });
    return false;
  }
  if (isDay(date)) return true;
  const message = 'The date is not a real day, written YYYY-MM-DD';
  problems.reject('invalid_date', message, { ...place, column: 'date', value: date });
  return false;
}

/**
 * Reads a CSV file with the columns `code` and `date`, in constant memory.
 * @throws Refusal for a file that is something else
 */
async function* pointsIn(file: SourceFile, problems: Problems): AsyncGenerator<NamedPoint[]> {
  let layout: Layout | null = null;
  for await (const rows of csvRows(file.bytes(), problems)) {
    const points: NamedPoint[] = [];
    for (const row of rows) {
      if (layout === null) layout = layoutOf(row);
      else if (row.fields.length !== 2) {
        const message = `The row has ${row.fields.length} fields, the header 2`;
        problems.reject('wrong_column_count', message, { line: row.line });
      } else {
        const { code, date } = layout;
        const [first = '', second = ''] = row.fields;
        const [codeText, dateText] = code < date ? [first, second] : [second, first];
        points.push({ line: row.line, code: codeText, date: dateText });
      }
    }
    yield points.filter((point) => isRight(point, problems));
  }
}

/** The points as they are named; `id` is that of the price. */
const TABLE = `
drop table if exists pg_temp.withdrawal;
create temp table withdrawal (
  line bigint not null,
  code text not null,
  key text not null,
  id integer,
  date date not null
)`;

/** Takes the staging table away at once: a connection that is used again would keep it. */
export const UNSTAGE = 'drop table pg_temp.withdrawal';

/** One line of COPY in text format; a visible character may be the backslash. */
const copyLine = ({ line, code, date }: NamedPoint): string => {
  const [name, key] = [code, matchKey(code)].map(copyEscaped);
  return `${line}\t${name}\t${key}\t\\N\t${date}\n`;
};

async function* linesOf(batches: AsyncIterable<NamedPoint[]>): AsyncGenerator<string> {
  for await (const points of batches) if (points.length > 0) yield points.map(copyLine).join('');
}

const copied = (driver: PoolClient, batches: AsyncIterable<NamedPoint[]>): Promise<void> =>
  pipeline(
    Readable.from(linesOf(batches)),
    driver.query(from('copy pg_temp.withdrawal from stdin')),
  );

/** The points of a file, as long as it is the file that was opened. */
async function stageFile(driver: PoolClient, file: SourceFile, sha256: Buffer, problems: Problems) {
  try {
    await copied(driver, pointsIn(file, problems));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    problems.refuse(error.problem);
  }
  if (!(await file.sha256()).equals(sha256)) {
    const message = 'The file was changed while it was read: name it again';
    problems.refuse(problemOf('file_changed', message, {}));
  }
}

/**
 * Names the points in a temporary table of the connection, as far as that needs no look at the
 * data; problems are noted.
 * @throws errors of the file system and of the database
 */
export async function stageWithdrawal(
  driver: PoolClient,
  selection: Selection,
  source: { readonly file: SourceFile; readonly sha256: Buffer } | null,
  problems: Problems,
): Promise<void> {
  await driver.query(TABLE);
  if (source) return stageFile(driver, source.file, source.sha256, problems);
  if (!('dates' in selection)) return;
  const { code, dates } = selection;
  const points = [...new Set(dates)].map((date) => ({ line: 0, code, date }));
  async function* named() {
    yield points.filter((point) => isRight(point, problems));
  }
  await copied(driver, named());
}

/** The possible faults of a named point, by problem code. */
type Fault = Extract<LoadErrorCode, 'unknown_code' | 'duplicate' | 'no_value'>;

interface FaultyPoint {
  readonly line: string;
  readonly code: string;
  readonly date: string;
  readonly fault: Fault;
  readonly total: string;
}

const codesOf = async (trx: Trx): Promise<string[]> => {
  const rows = await trx.selectFrom('price').select('code').execute();
  return rows.map(({ code }) => code);
};

/** Codes that get a suggestion: comparing with every code is slow. */
const OFFERED_MAX = 20;

/** Numbers the prices of the named points, and notes the points that there are not. */
async function checkNamed(trx: Trx, problems: Problems): Promise<void> {
  await sql`analyze pg_temp.withdrawal`.execute(trx);
  await sql`
    update pg_temp.withdrawal w set id = p.id from price p where p.code_key = w.key`.execute(trx);
  const { rows } = await sql<FaultyPoint>`
    select *, count(*) over () as total from (
      select w.line, w.code, w.date, case
        when w.id is null then 'unknown_code'
        when row_number() over (partition by w.id, w.date order by w.line) > 1 then 'duplicate'
        when s.price_id is null then 'no_value' end as fault
      from pg_temp.withdrawal w left join series s on s.price_id = w.id and s.date = w.date
    ) as named
    where fault is not null order by line, code, date limit ${PROBLEMS_MAX}`.execute(trx);
  const hints = new Map<string, string>();
  const codes = rows.some(({ fault }) => fault === 'unknown_code') ? await codesOf(trx) : [];
  for (const { line, code, date, fault } of rows) {
    const isOffered = fault === 'unknown_code' && hints.size < OFFERED_MAX;
    if (isOffered && !hints.has(code)) hints.set(code, didYouMean(code, codes));
    const messages: Readonly<Record<Fault, string>> = {
      unknown_code: `No price has this code${hints.get(code) ?? ''}`,
      duplicate: `${code} and ${date} were named before`,
      no_value: `${code} has no value on ${date}`,
    };
    const [column, value] = fault === 'unknown_code' ? ['code', code] : ['date', date];
    const place = Number(line) === 0 ? {} : { line: Number(line) };
    problems.reject(fault, messages[fault], { ...place, column, value });
  }
  problems.leftOut(Number(rows[0]?.total ?? 0) - rows.length);
}

/** Names the points of a price between two days. */
async function nameRange(
  trx: Trx,
  { code, from, to }: Extract<Selection, { from: string | null }>,
  problems: Problems,
): Promise<void> {
  const price = await trx
    .selectFrom('price')
    .select(['id', 'code'])
    .where('code_key', '=', matchKey(code))
    .executeTakeFirst();
  if (!price) {
    const message = `No price has this code${didYouMean(code, await codesOf(trx))}`;
    problems.reject('unknown_code', message, { column: 'code', value: code });
    return;
  }
  const named = await sql`
    insert into pg_temp.withdrawal (line, code, key, id, date)
    select 0, ${price.code}, '', price_id, date from series
    where price_id = ${price.id}
      and date between coalesce(${from}::date, '-infinity') and coalesce(${to}::date, 'infinity')
    `.execute(trx);
  if (Number(named.numAffectedRows) > 0) return;
  const span = from === null && to === null ? '' : ' on these days';
  problems.reject('no_value', `${price.code} has no value${span}`, {});
}

/** Finds the points in the data, and notes what is not there. */
export async function checkWithdrawal(
  trx: Trx,
  selection: Selection,
  problems: Problems,
): Promise<void> {
  if ('from' in selection) await nameRange(trx, selection, problems);
  else await checkNamed(trx, problems);
}
