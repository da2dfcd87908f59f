import type pg from 'pg';
import type t from 'tap';
import type { PriceBook } from '../../src/book/book.ts';
import { FORMATS, formatsOf } from '../../src/contract/schemas/formats.ts';
import type { AnswerCache } from '../../src/http/reply/answer-cache.ts';
import type { TestDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import { anyRequest, type PriceRequest, type ValuesByMarket } from '../support/fuzz/any-request.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { SPECIFIED } from '../support/prices/specification.ts';

/** The service with a book and the service without, over one database. */
export interface Twins {
  readonly database: TestDatabase;
  readonly cached: Service;
  readonly plain: Service;
  readonly book: PriceBook;
  readonly answers: AnswerCache;
}

export async function twinsOn(
  test: Pick<typeof t, 'teardown'>,
  database: TestDatabase,
  env: Readonly<Record<string, string>> = {},
): Promise<Twins> {
  const cached = await serviceOn(test, database, env);
  const plain = await serviceOn(test, database, { PRICE_BOOK_BYTES: '0' });
  const { book, answers } = cached.app;
  const isPlain = plain.app.book === null && plain.app.answers === null;
  if (book === null || answers === null || !isPlain) throw new Error('one service has a book');
  return { database, cached, plain, book, answers };
}

/** Brings all markets into the book, as far as they fit. */
export const fill = ({ book, database }: Pick<Twins, 'book' | 'database'>): Promise<void> =>
  book.fill(() => database.client.link.newestRevision());

/** A request, and how its answer should be written. */
export interface BookRequest extends PriceRequest {
  readonly accept: string;
}

const MEDIA = Object.values(FORMATS).map(({ media }) => media);

/** Media types of formats that can be a wide table. */
const WIDE: readonly string[] = formatsOf('layout').map((name) => FORMATS[name].media);

/** Filters that take a few values of some dimensions. */
export type FilterValues = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/** By market and filter: the names that its prices have. */
export async function filterValuesOf({ cached }: Pick<Twins, 'cached'>): Promise<FilterValues> {
  const found = new Map<string, ReadonlyMap<string, readonly string[]>>();
  for (const { slug } of SPECIFIED) {
    const url = `/v3/prices/${slug}/filters`;
    const { json } = await cached.request({ method: 'GET', url });
    const names = Object.entries(json.data as Record<string, { name: string }[]>).map(
      ([filter, values]) => [filter, values.map(({ name }) => name)] as const,
    );
    found.set(slug, new Map(names.filter(([, values]) => values.length > 0)));
  }
  return found;
}

/** Makes requests of every kind and format, by codes, by any filter, or of whole markets. */
export function anyBookRequest(
  random: () => number,
): (values: ValuesByMarket, by: FilterValues) => BookRequest {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const any = anyRequest(random);
  return (values, by) => {
    const whole = any(values);
    const limit = 1 + Math.floor(random() * 6);
    const accept = random() < 0.5 ? 'application/json' : pick(MEDIA);
    const { includeSeries } = whole.options as { includeSeries?: boolean };
    const options = {
      ...whole.options,
      ...(random() < 0.15 ? { limit } : {}),
      ...(includeSeries && random() < 0.2 ? { lastObservations: limit } : {}),
      ...(includeSeries && WIDE.includes(accept) && random() < 0.3 ? { layout: 'wide' } : {}),
    };
    const request = { ...whole, options };
    const draw = random();
    if (draw < 0.4) return { ...request, accept };
    const { dateFrom, dateTo } = request.filters as { dateFrom?: string; dateTo?: string };
    const filters: Record<string, unknown> = {};
    if (dateFrom !== undefined) filters['dateFrom'] = dateFrom;
    if (dateTo !== undefined) filters['dateTo'] = dateTo;
    const lists = [...(by.get(request.slug) ?? [])];
    for (let count = draw < 0.5 ? 0 : 1 + Math.floor(random() * 2); count > 0; count -= 1) {
      const [filter, names] = pick(lists);
      filters[filter] = [pick(names), pick([...names, 'Unobtainium'])];
    }
    return { ...request, filters, accept };
  };
}

/** An answer as far as it is the same from one call to the next. */
export async function answerOf(
  { app, key }: Service,
  { slug, filters, options, accept }: BookRequest,
  more: Readonly<Record<string, string>> = {},
) {
  const { statusCode, rawPayload, headers } = await app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    headers: { 'x-api-key': key, accept, ...more },
    payload: { filters, options },
  });
  const about = [
    'content-type',
    'x-data-revision',
    'x-warnings',
    'x-warnings-count',
    'x-next-cursor',
  ];
  const said = about.map((name) => String(headers[name]));
  // A refusal differs from the next by the id of its request alone.
  const isProblem = statusCode !== 200;
  const body = isProblem
    ? Buffer.from(rawPayload.toString().replace(/"requestId":"[^"]+"/, ''))
    : rawPayload;
  return { status: statusCode, said, body, headers };
}

const PRICE = '(select id from price where random() >= 0 order by md5(code || $1) limit 1)';
const DATES =
  '(select date from series where price_id = $PRICE order by md5(date::text || $1) limit 3)';

/** Changes of every kind. `$1` is a random text. */
const STATEMENTS: readonly string[] = [
  // Corrections, among them to a negative value and to one that needs a wide number.
  `update series set mid = mid + 1, high = high + 2, corrections = corrections + 1
    where price_id = ${PRICE} and date in ${DATES}`,
  `update series set low = null, mid = -12.5, high = null, corrections = corrections + 1
    where price_id = ${PRICE} and date in ${DATES}`,
  `update series set low = null, mid = 98765432109.1234, high = null
    where price_id = ${PRICE} and date in ${DATES}`,
  // New points: a new day, and days long before.
  `insert into series (price_id, date, mid, published_at)
    select ${PRICE}, (select max(date) + 1 from series where date < current_date), 7.25,
      '2026-01-05T16:00:00.123456Z'
    on conflict do nothing`,
  `insert into series (price_id, date, mid, published_at)
    select ${PRICE}, date '1999-01-31' + 31 * n, n, '2000-01-01Z' from generate_series(1, 40) as n
    on conflict do nothing`,
  // Withdrawals: some points, all points of a price, a price.
  `delete from series where price_id = ${PRICE} and date in ${DATES}`,
  `delete from series where price_id = ${PRICE}`,
  `update price set name = name || '!', short_name = null where id = ${PRICE}`,
  `update price set specification = '[{"name": "VAT", "value": "Included", "order": 1}]'
    where id = ${PRICE}`,
  // Means of months and years, which are converted at rates of their own.
  `update price set observes = 'month-mean' where id = ${PRICE}`,
  `update price set observes = 'year-mean' where product_id =
    (select product_id from price where id = ${PRICE})`,
  // Reference data, which records show and filters take.
  `update product set name = name || '.', match_key = match_key || '.'
    where id = (select product_id from price where id = ${PRICE})`,
  `update dimension_value set name = name || '\u00e9'
    where id = (select price_category_id from price where id = ${PRICE})`,
  "update currency set symbol = symbol || '*' where iso = 'USD'",
  "update unit_of_measure set symbol = symbol || '*' where slug = 'kilogram'",
  // Calendars: when prices are due, and which follows which.
  `update holiday_list set days = '[{"date": "2026-07-01", "name": "A holiday"}]'
    where id = (select id from holiday_list order by md5(slug || $1) limit 1)`,
  `update calendar set due_time = '12:34', policy = 'nearest'
    where id = (select calendar_id from price_calendar where price_id = ${PRICE})`,
  `delete from price_calendar where price_id = ${PRICE}`,
  // Rates.
  `update fx_rate set rate = trim_scale(rate + 0.0001) where source = 'SAMPLE'
    and date in (select date from fx_rate where source = 'SAMPLE'
      order by md5(date::text || $1) limit 5)`,
  "delete from fx_rate where source = 'SAMPLE' and date between '2026-01-10' and '2026-01-12'",
  // Rates that end, and a hole in those of all currencies.
  `delete from fx_rate where source = 'SAMPLE' and date > '2026-05-01'
    and currency_id = (select id from currency where iso = 'CNY')`,
  "delete from fx_rate where source = 'SAMPLE' and date between '2025-11-03' and '2025-11-27'",
];

/** Random changes of every kind that a person could make by SQL; each is one commit. */
export function disturber(random: () => number) {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  return async (pool: pg.Pool): Promise<void> => {
    const seed = String(random());
    for (;;) {
      const statement = pick(STATEMENTS).replaceAll('$PRICE', PRICE);
      const changed = await inTransaction(pool, (client) => attempt(client, statement, seed)).catch(
        (error: Error) => {
          // The statement found nothing to do, or broke a rule of the tables: another one, then.
          if (/changed nothing|violates/.test(error.message)) return false;
          throw error;
        },
      );
      if (changed) return;
    }
  };
}

async function attempt(client: pg.PoolClient, statement: string, seed: string): Promise<boolean> {
  await client.query("select open_revision('a disturbance')");
  const values = statement.includes('$1') ? [seed] : [];
  const { rowCount } = await client.query(statement, values);
  return (rowCount ?? 0) > 0;
}
