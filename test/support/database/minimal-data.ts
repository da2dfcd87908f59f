import type pg from 'pg';

/** A row as columns and the SQL expressions of their values. */
export type Row = Readonly<Record<string, string>>;

/** `insert` of one row, its values written as SQL expressions. */
export const insertOf = (table: string, row: Row): string =>
  `insert into ${table} (${Object.keys(row).join(', ')}) values (${Object.values(row).join(', ')})`;

const idOf = (table: string, column: string, value: string): string =>
  `(select id from ${table} where ${column} = '${value}')`;

export const marketId = (slug: string): string => idOf('market', 'slug', slug);
export const valueId = (slug: string): string => idOf('dimension_value', 'slug', slug);
export const priceId = (code: string): string => idOf('price', 'code', code);
export const productId = (slug: string): string => idOf('product', 'slug', slug);

const uuid = 'gen_random_uuid()';

export const CURRENCY: Row = { uuid, iso: "'USD'", name: "'US dollar'", symbol: "'$'" };

export const UNIT: Row = {
  uuid,
  slug: "'tonne'",
  name: "'Tonne'",
  symbol: "'t'",
  name_key: "'tonne'",
  symbol_key: "'t'",
  dimension: "'mass'",
  factor: '1000',
};

const PERCENT: Row = {
  ...UNIT,
  slug: "'percent'",
  name: "'Percent'",
  symbol: "'%'",
  name_key: "'percent'",
  symbol_key: "'%'",
  dimension: "'ratio'",
  factor: '1',
};

/** A value of a dimension whose slug, name and key are one text. */
export const valueRow = (kind: string, slug: string, more: Row = {}): Row => ({
  uuid,
  kind: `'${kind}'`,
  slug: `'${slug}'`,
  name: `'${slug}'`,
  match_key: `'${slug}'`,
  ...more,
});

export const productRow = (market: string, slug: string): Row => ({
  uuid,
  market_id: marketId(market),
  slug: `'${slug}'`,
  name: `'${slug}'`,
  alias: "'Ni'",
  chemical_code: "'Ni'",
  is_sustainable: 'false',
  match_key: `'${slug}'`,
});

/** A valid price of nickel; `more` overrides columns. */
export const priceRow = (code: string, more: Row = {}): Row => ({
  market_id: marketId('nickel'),
  code: `'${code}'`,
  code_key: `'${code.toLowerCase()}'`,
  price_type: "'price'",
  currency_id: idOf('currency', 'iso', 'USD'),
  unit_id: idOf('unit_of_measure', 'slug', 'tonne'),
  unit_dimension: "'mass'",
  product_id: productId('nickel-metal'),
  name: `'Price ${code}'`,
  price_category_id: valueId('spot'),
  frequency_id: valueId('daily'),
  ...more,
});

/** Columns that make a price a payable. */
export const PAYABLE: Row = {
  price_type: "'payable'",
  currency_id: 'null',
  unit_id: idOf('unit_of_measure', 'slug', 'percent'),
  unit_dimension: "'ratio'",
};

export const OF_COPPER: Row = {
  market_id: marketId('copper'),
  product_id: productId('copper-metal'),
};

/** A valid point of the price `T-1`; `more` overrides columns. */
export const pointRow = (more: Row = {}): Row => ({
  price_id: priceId('T-1'),
  date: "'2024-01-02'",
  low: '9',
  mid: '10',
  high: '11',
  published_at: "'2024-01-02T16:00:00Z'",
  ...more,
});

export const SOURCE: Row = {
  slug: "'TEST'",
  name: "'Rates of the tests'",
  base_currency_id: idOf('currency', 'iso', 'USD'),
};

export const rateRow = (more: Row = {}): Row => ({
  source: "'TEST'",
  currency_id: idOf('currency', 'iso', 'USD'),
  date: "'2024-01-02'",
  rate: '1.25',
  ...more,
});

type TransactionWork<T> = (client: pg.PoolClient) => Promise<T>;

/** Runs work in a transaction; `end` is its last statement on success. */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: TransactionWork<T>,
  end: 'commit' | 'rollback' = 'commit',
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query(end);
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

/** Runs statements as one revision, in one transaction; returns its number. */
export const inRevision = (pool: pg.Pool, ...statements: readonly string[]): Promise<number> =>
  inTransaction(pool, async (client) => {
    const { rows } = await client.query("select open_revision('test') as number");
    for (const statement of statements) await client.query(statement);
    return Number(rows[0].number);
  });

/**
 * Fills an empty, migrated database with the least that prices can refer to, as revision 1: the
 * prices T-1 (nickel), T-2 (nickel, payable) and T-3 (copper), and no point.
 */
export const writeMinimalData = (pool: pg.Pool): Promise<number> =>
  inRevision(
    pool,
    insertOf('currency', CURRENCY),
    insertOf('unit_of_measure', UNIT),
    insertOf('unit_of_measure', PERCENT),
    insertOf('dimension_value', valueRow('price-category', 'spot')),
    insertOf('dimension_value', valueRow('frequency', 'daily', { short_name: "'D'" })),
    insertOf('dimension_value', valueRow('price-type', 'price')),
    insertOf('dimension_value', valueRow('price-type', 'payable')),
    insertOf('dimension_value', valueRow('region', 'europe')),
    insertOf('product', productRow('nickel', 'nickel-metal')),
    insertOf('product', productRow('copper', 'copper-metal')),
    insertOf('fx_source', SOURCE),
    insertOf('price', priceRow('T-1')),
    insertOf('price', priceRow('T-2', PAYABLE)),
    insertOf('price', priceRow('T-3', OF_COPPER)),
  );

/** The error of a rejected promise; a placeholder if it resolved. */
export const failureOf = (work: Promise<unknown>): Promise<{ message: string; hint?: string }> =>
  work.then(
    () => ({ message: 'nothing failed' }),
    (error) => error,
  );
