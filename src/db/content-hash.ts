import { createHash } from 'node:crypto';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { columnName, DIMENSIONS } from '../catalog/dimensions.ts';
import type { Client } from './client.ts';
import { withConnection } from './connection.ts';

/** The size of one part of the data, and its SHA-256. */
export interface PartHash {
  /** The name of a revision scope: `reference`, the slug of a market, or `fx:<source>`. */
  readonly part: string;
  readonly hash: string;
  /** Rows of reference data, points of a market, rates of a source. */
  readonly values: number;
  /** Prices of a market; null for the other parts. */
  readonly prices: number | null;
}

/** A hash of the current data. */
export interface ContentHash {
  /** SHA-256 of the names and hashes of all parts. */
  readonly hash: string;
  /** Sorted by name. */
  readonly parts: readonly PartHash[];
}

/** Prices of one statement: limits the rows that it sorts. */
const PRICES_AT_ONCE = 100;

const REFERENCE = [
  'select iso, uuid, name, symbol from currency order by iso collate "C"',
  `select slug, uuid, name, symbol, rec20, dimension, trim_scale(factor) from unit_of_measure
    order by slug collate "C"`,
  `select kind, slug, uuid, name, short_name from dimension_value
    order by kind collate "C", slug collate "C"`,
  `select m.slug, p.slug, p.uuid, p.name, p.alias, p.chemical_code, p.is_sustainable
    from product p join market m on m.id = p.market_id
    order by m.slug collate "C", p.slug collate "C"`,
  'select words, alias from search_alias order by words collate "C", alias collate "C"',
  `select slug, source, known_from, known_until, days, working_days from holiday_list
    order by slug collate "C"`,
  `select c.slug, c.rule, c.due_time, c.zone, l.slug, c.policy, c.make_up_days
    from calendar c left join holiday_list l on l.id = c.holiday_list_id
    order by c.slug collate "C"`,
  'select country, valid_from, trim_scale(rate) from vat_rate order by country, valid_from',
];

// Row ids differ between databases; slugs do not.
const DIMENSION_SLUGS = [
  'priceCategory',
  'frequency',
  ...Object.values(DIMENSIONS).map(({ field }) => field),
]
  .map((field) => `(select slug from dimension_value where id = p.${columnName(field)})`)
  .join(', ');

const pricesOf = (marketId: number): string => `
  select p.code, p.price_type, c.iso, u.slug, d.slug, p.name, p.short_name, p.specification,
    p.assessment_launched_at, coalesce(p.observes, 'day'), p.vat_country, p.payable_reference,
    ${DIMENSION_SLUGS}, (select c.slug
      from price_calendar f join calendar c on c.id = f.calendar_id where f.price_id = p.id)
  from price p join unit_of_measure u on u.id = p.unit_id join product d on d.id = p.product_id
    left join currency c on c.id = p.currency_id
  where p.market_id = ${marketId} order by p.code collate "C"`;

const pointsOf = (priceIds: readonly number[]): string => `
  select p.code, s.date, s.low, s.mid, s.high
  from unnest('{${priceIds.join()}}'::integer[]) with ordinality as requested (id, position)
    join price p on p.id = requested.id join series s on s.price_id = p.id
  order by requested.position, s.date`;

function* statementsOf(marketId: number, priceIds: readonly number[]): Generator<string> {
  yield pricesOf(marketId);
  for (let at = 0; at < priceIds.length; at += PRICES_AT_ONCE) {
    yield pointsOf(priceIds.slice(at, at + PRICES_AT_ONCE));
  }
}

const baseOf = (source: string): string => `
  select c.iso from fx_source s join currency c on c.id = s.base_currency_id
  where s.slug = '${source}'`;

const ratesOf = (source: string): string => `
  select c.iso, r.date, r.rate from fx_rate r join currency c on c.id = r.currency_id
  where r.source = '${source}' order by c.iso collate "C", r.date`;

/**
 * Hashes the rows of statements in the format of COPY.
 * @returns the number of rows of each statement
 */
async function hashed(driver: pg.PoolClient, statements: Iterable<string>, signal?: AbortSignal) {
  const hash = createHash('sha256');
  const counts: number[] = [];
  for (const statement of statements) {
    const stream = driver.query(copyTo(`copy (${statement}) to stdout`));
    for await (const chunk of stream) {
      signal?.throwIfAborted();
      hash.update(chunk as Buffer);
    }
    // Separates statements: a row that moves into the next statement changes the hash.
    hash.update('\\.\n');
    counts.push(stream.rowCount);
  }
  return { hash: hash.digest('hex'), counts };
}

const sum = (counts: readonly number[]): number => counts.reduce((all, each) => all + each, 0);

/**
 * Hashes the current data: reference data, calendars and rates of VAT, prices with all attributes,
 * low, mid and high of each point, and exchange rates. Excludes revisions, history, batches, API
 * keys, publication times and correction counts, so that databases with the same values have the
 * same hash, whatever the order of their loads. Reads one snapshot, in constant memory.
 */
export const contentHash = ({ pool }: Client, signal?: AbortSignal): Promise<ContentHash> =>
  withConnection(pool, async ({ driver }) => {
    await driver.query('begin isolation level repeatable read read only');
    const reference = await hashed(driver, REFERENCE, signal);
    const parts: PartHash[] = [
      { part: 'reference', hash: reference.hash, values: sum(reference.counts), prices: null },
    ];
    const markets = await driver.query<{ slug: string; id: number; prices: number[] }>(
      `select slug, id, array(select p.id from price p where p.market_id = m.id
        order by p.code collate "C") as prices from market m`,
    );
    for (const { slug, id, prices: ids } of markets.rows) {
      const { hash, counts } = await hashed(driver, statementsOf(id, ids), signal);
      const [prices = 0, ...values] = counts;
      parts.push({ part: slug, hash, values: sum(values), prices });
    }
    const sources = await driver.query<{ slug: string }>('select slug from fx_source');
    for (const { slug } of sources.rows) {
      const { hash, counts } = await hashed(driver, [baseOf(slug), ratesOf(slug)], signal);
      parts.push({ part: `fx:${slug}`, hash, values: counts[1] ?? 0, prices: null });
    }
    await driver.query('commit');
    parts.sort((a, b) => (a.part < b.part ? -1 : 1));
    const whole = createHash('sha256');
    for (const { part, hash } of parts) whole.update(`${part} ${hash}\n`);
    return { hash: whole.digest('hex'), parts };
  });
