import { createHash, type Hash } from 'node:crypto';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { columnName, DIMENSIONS } from '../catalog/dimensions.ts';
import type { Client } from './client.ts';
import { withConnection } from './connection.ts';

/** One part of the data: how much it holds, and the SHA-256 of it. */
export interface PartHash {
  /** Named as the scopes of revisions are: `reference`, the slug of a market, `fx:<source>`. */
  readonly part: string;
  readonly hash: string;
  /** Rows of reference data, points of a market, rates of a source. */
  readonly values: number;
  /** Prices of a market; null for the other parts. */
  readonly prices: number | null;
}

/** The current data as one number. */
export interface ContentHash {
  /** SHA-256 of the names and hashes of all parts. */
  readonly hash: string;
  /** Sorted by name. */
  readonly parts: readonly PartHash[];
}

/** Prices whose points one statement reads, so that none has many rows to sort. */
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
];

// Numbers of rows differ from database to database; a slug is the same in all of them.
const DIMENSION_SLUGS = ['priceCategory', 'frequency', ...fieldsOfDimensions()]
  .map((field) => `(select slug from dimension_value where id = p.${columnName(field)})`)
  .join(', ');

function fieldsOfDimensions(): string[] {
  return Object.values(DIMENSIONS).map(({ field }) => field);
}

const pricesOf = (marketId: number): string => `
  select p.code, p.price_type, c.iso, u.slug, d.slug, p.name, p.short_name, p.specification,
    p.assessment_launched_at, ${DIMENSION_SLUGS}
  from price p join unit_of_measure u on u.id = p.unit_id join product d on d.id = p.product_id
    left join currency c on c.id = p.currency_id
  where p.market_id = ${marketId} order by p.code collate "C"`;

const pointsOf = (priceIds: readonly number[]): string => `
  select p.code, s.date, s.low, s.mid, s.high
  from unnest('{${priceIds.join()}}'::integer[]) with ordinality as asked (id, place)
    join price p on p.id = asked.id join series s on s.price_id = p.id
  order by asked.place, s.date`;

const baseOf = (source: string): string => `
  select c.iso from fx_source s join currency c on c.id = s.base_currency_id
  where s.slug = '${source}'`;

const ratesOf = (source: string): string => `
  select c.iso, r.date, r.rate from fx_rate r join currency c on c.id = r.currency_id
  where r.source = '${source}' order by c.iso collate "C", r.date`;

/** Reads one part after another on one connection, inside one snapshot. */
class Reader {
  private readonly driver: pg.PoolClient;
  private readonly signal: AbortSignal | undefined;

  constructor(driver: pg.PoolClient, signal: AbortSignal | undefined) {
    this.driver = driver;
    this.signal = signal;
  }

  async reference(): Promise<PartHash> {
    const hash = createHash('sha256');
    let values = 0;
    for (const statement of REFERENCE) values += await this.add(hash, statement);
    return { part: 'reference', hash: hash.digest('hex'), values, prices: null };
  }

  async market(id: number, part: string): Promise<PartHash> {
    const hash = createHash('sha256');
    const prices = await this.add(hash, pricesOf(id));
    const { rows } = await this.driver.query<{ id: number }>(
      'select id from price where market_id = $1 order by code collate "C"',
      [id],
    );
    const ids = rows.map((row) => row.id);
    let values = 0;
    for (let at = 0; at < ids.length; at += PRICES_AT_ONCE) {
      values += await this.add(hash, pointsOf(ids.slice(at, at + PRICES_AT_ONCE)));
    }
    return { part, hash: hash.digest('hex'), values, prices };
  }

  async rates(source: string): Promise<PartHash> {
    const hash = createHash('sha256');
    await this.add(hash, baseOf(source));
    const values = await this.add(hash, ratesOf(source));
    return { part: `fx:${source}`, hash: hash.digest('hex'), values, prices: null };
  }

  /** Adds the rows of a statement as COPY writes them. Returns how many there were. */
  private async add(hash: Hash, statement: string): Promise<number> {
    const stream = this.driver.query(copyTo(`copy (${statement}) to stdout`));
    for await (const chunk of stream) {
      this.signal?.throwIfAborted();
      hash.update(chunk as Buffer);
    }
    // No row reads so: a row that moved into the next statement is another content.
    hash.update('\\.\n');
    return stream.rowCount;
  }
}

/**
 * Hashes what readers see now: reference data, prices with all their attributes, the low, mid and
 * high of each point, and exchange rates. Revisions, history, batches, users' keys, and the
 * moments and counts of publication and correction are no part of it: databases that were filled
 * in other orders, or restored, hash the same when they show the same values. The data are read as
 * of one moment, in memory that does not grow with them.
 */
export const contentHash = ({ pool }: Client, signal?: AbortSignal): Promise<ContentHash> =>
  withConnection(pool, async ({ driver }) => {
    await driver.query('begin isolation level repeatable read read only');
    const reader = new Reader(driver, signal);
    const parts = [await reader.reference()];
    const markets = await driver.query<{ id: number; slug: string }>('select id, slug from market');
    for (const { id, slug } of markets.rows) parts.push(await reader.market(id, slug));
    const sources = await driver.query<{ slug: string }>('select slug from fx_source');
    for (const { slug } of sources.rows) parts.push(await reader.rates(slug));
    await driver.query('commit');
    parts.sort((a, b) => (a.part < b.part ? -1 : 1));
    const whole = createHash('sha256');
    for (const { part, hash } of parts) whole.update(`${part} ${hash}\n`);
    return { hash: whole.digest('hex'), parts };
  });
