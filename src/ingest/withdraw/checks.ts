import { sql } from 'kysely';
import { matchKey } from '../../catalog/match-key.ts';
import { offer } from '../offer.ts';
import { type LoadErrorCode, PROBLEMS_MAX, type Problems } from '../problems.ts';
import type { Trx } from '../reference.ts';
import type { Selection } from './request.ts';

/** What may be wrong with a named point, by the code of the problem. */
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
    if (isOffered && !hints.has(code)) hints.set(code, offer(code, codes));
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
    const message = `No price has this code${offer(code, await codesOf(trx))}`;
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
