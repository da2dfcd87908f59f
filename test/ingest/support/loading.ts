import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import type t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { load } from '../../../src/ingest/load/load.ts';
import type { LoadReport, LoadRequest } from '../../../src/ingest/load/request.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A private database with reference data and without prices, like a new production database. */
export async function loadingDatabase(test: Test): Promise<TestDatabase> {
  const database = await testDatabase(test);
  await seed(database.client, { reference: true });
  return database;
}

/** The path of a fixture in a publisher's format. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));

/** Writes a temporary file, removed after the test. */
export async function fileOf(
  test: Test,
  content: string | Uint8Array,
  name = 'file',
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'commodity-prices-load-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

type LoadingOptions = Partial<Omit<LoadRequest, 'format' | 'file'>>;

/** Loads an existing file. Jumps are accepted by default. */
export const loadFile = (
  client: Client,
  format: LoadRequest['format'],
  file: string,
  options: LoadingOptions = {},
): Promise<LoadReport> =>
  load(client, { format, file, actor: 'tester', jumpFactor: '5', acceptJumps: true, ...options });

/** Loads a file with this content. */
export const loadText = async (
  test: Test,
  client: Client,
  format: LoadRequest['format'],
  content: string | Uint8Array,
  options: LoadingOptions = {},
): Promise<LoadReport> => loadFile(client, format, await fileOf(test, content), options);

/** Options that allow corrections. */
export const CORRECTING = { allowCorrections: true, reason: 'the publisher corrected them' };

/** A CSV file with a header of points only. */
export const points = (...rows: string[]): string =>
  ['code,date,low,mid,high,publishedAt', ...rows, ''].join('\n');

const DESCRIPTION = {
  market: 'aluminium',
  product: 'Bauxite',
  priceCategory: 'Spot',
  priceType: 'Price',
  frequency: 'Weekly',
  currency: 'USD',
  unitOfMeasure: 'Tonne',
  region: 'Global',
};

async function describe(client: Client, codes: readonly string[], more: object): Promise<void> {
  const lines = codes.map((code) =>
    JSON.stringify({ price: { code, name: `Price ${code}`, ...DESCRIPTION, ...more } }),
  );
  const folder = await mkdtemp(join(tmpdir(), 'commodity-prices-load-'));
  const file = join(folder, `${randomUUID()}.ndjson`);
  await writeFile(file, lines.join('\n'));
  const report = await loadFile(client, 'ndjson', file);
  await rm(folder, { recursive: true });
  if (report.status !== 'applied') throw new Error(JSON.stringify(report.errors));
}

/** Describes aluminium prices with these codes, so that points can follow. */
export const describePrices = (client: Client, ...codes: string[]): Promise<void> =>
  describe(client, codes, {});

/** Describes a payable. */
export const describePayable = (client: Client, code: string): Promise<void> =>
  describe(client, [code], { priceType: 'Payable', currency: null, unitOfMeasure: 'Percent' });

/** The points of a price: date, low, mid, high, corrections. */
export async function seriesOf(pool: pg.Pool, code: string): Promise<unknown[][]> {
  const { rows } = await pool.query({
    text: `select date, low, mid, high, corrections from series
      where price_id = (select id from price where code = $1) order by date`,
    values: [code],
    rowMode: 'array',
  });
  return rows;
}

/** Queries of all current values, attributes and rates, without batches and times. */
const CONTENT = [
  `select code, date, low, mid, high from series join price on id = price_id`,
  `select code, name, short_name, specification, market_id from price`,
  `select source, iso, date, rate from fx_rate join currency on id = currency_id`,
  `select slug, name from product`,
  `select iso, name, symbol from currency`,
];
const LEDGER = [
  `select date, mid, revision_to from series_history`,
  `select number from revision`,
  `select id, status, rows from load_batch`,
];

async function digest(pool: pg.Pool, queries: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const query of queries) {
    const { rows } = await pool.query(
      `select r::text as row from (${query}) as r order by r::text collate "C"`,
    );
    hash.update(`${rows.map(({ row }) => row).join('\n')}\n\n`);
  }
  return hash.digest('hex');
}

/** A digest of the current data, independent of the way that led to them. */
export const contentOf = (pool: pg.Pool): Promise<string> => digest(pool, CONTENT);

/** A digest of all tables, including history, revisions and the ledger. */
export const stateOf = (pool: pg.Pool): Promise<string> => digest(pool, [...CONTENT, ...LEDGER]);

/** The lines and codes of the errors. */
export const errorsOf = (report: LoadReport): unknown[][] =>
  report.errors.map(({ line, column, code }) => [line, column, code]);

/** The stored attributes of each price, by name. */
export async function pricesOf(pool: pg.Pool): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query(`
    select p.code, m.slug as market, p.name, p.short_name, p.price_type, c.iso, u.name as unit,
      d.name as product, q.name as purity, i.name as incoterm, p.assessment_launched_at as launched,
      p.specification
    from price p join market m on m.id = p.market_id join product d on d.id = p.product_id
      join unit_of_measure u on u.id = p.unit_id left join currency c on c.id = p.currency_id
      left join dimension_value q on q.id = p.purity_id
      left join dimension_value i on i.id = p.incoterm_id
    order by p.code`);
  return rows;
}
