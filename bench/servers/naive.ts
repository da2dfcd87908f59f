/**
 * The naive implementation on the same tables: Kysely rows, objects, and Fastify's serialisation by
 * a response schema. It reads the newest revision, converts nothing and checks no credentials.
 */
import Fastify from 'fastify';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';

interface RequestBody {
  readonly filters: {
    readonly codes?: readonly string[];
    readonly regions?: readonly string[];
    readonly dateFrom?: string;
    readonly dateTo?: string;
  };
  readonly options?: { readonly includeSeries?: boolean };
}

const DIMENSIONS = [
  'price_category',
  'frequency',
  'purity',
  'incoterm',
  'country',
  'region',
  'service',
];

const pool = new pg.Pool({
  connectionString: process.env['DATABASE_URL'],
  max: 8,
  idleTimeoutMillis: 0,
});
// Parses values as doubles: inexact, and cheaper than text.
pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number);
pg.types.setTypeParser(pg.types.builtins.DATE, (day) => day);
// biome-ignore lint/suspicious/noExplicitAny: a stand-in for what one writes without types.
const db = new Kysely<any>({ dialect: new PostgresDialect({ pool }) });

const joins = DIMENSIONS.map(
  (name) => `left join dimension_value ${name} on ${name}.id = price.${name}_id`,
).join(' ');
const columns = DIMENSIONS.map(
  (name) => `json_build_object('id', ${name}.uuid, 'name', ${name}.name) as ${name}`,
).join(', ');

async function pricesOf({ filters }: RequestBody) {
  const conditions = [sql`market.slug = 'nickel'`];
  if (filters.codes) conditions.push(sql`price.code = any(${filters.codes}::text[])`);
  if (filters.regions) conditions.push(sql`region.name = any(${filters.regions}::text[])`);
  const { rows } = await sql<Record<string, unknown> & { id: number }>`
    select price.id, price.code, price.name, price.short_name as "shortName", price.specification,
      price.assessment_launched_at as "assessmentLaunchedAt",
      (select max(date) from series where price_id = price.id) as "lastAssessedAt",
      product.name as product, currency.iso as currency, unit_of_measure.name as "unitOfMeasure",
      ${sql.raw(columns)}
    from price join market on market.id = price.market_id
      join product on product.id = price.product_id
      left join currency on currency.id = price.currency_id
      join unit_of_measure on unit_of_measure.id = price.unit_id
      ${sql.raw(joins)}
    where ${sql.join(conditions, sql` and `)} order by price.code`.execute(db);
  return rows;
}

async function seriesOf(ids: readonly number[], { filters }: RequestBody) {
  let query = db
    .selectFrom('series')
    .select(['price_id', 'date', 'low', 'mid', 'high', 'published_at', 'corrections'])
    .where('price_id', 'in', ids)
    .orderBy('price_id')
    .orderBy('date');
  if (filters.dateFrom) query = query.where('date', '>=', filters.dateFrom);
  if (filters.dateTo) query = query.where('date', '<=', filters.dateTo);
  const grouped = new Map<number, unknown[]>();
  for (const { price_id, published_at, ...point } of await query.execute()) {
    const points = grouped.get(price_id) ?? [];
    points.push({ ...point, publishedAt: published_at });
    grouped.set(price_id, points);
  }
  return grouped;
}

const text = { type: ['string', 'null'] };
const named = { type: 'object', properties: { id: text, name: text } };
const number = { type: ['number', 'null'] };
const point = {
  type: 'object',
  properties: {
    date: text,
    low: number,
    mid: number,
    high: number,
    publishedAt: text,
    corrections: number,
  },
};
const record = {
  type: 'object',
  properties: {
    ...Object.fromEntries(
      [
        'code',
        'name',
        'shortName',
        'assessmentLaunchedAt',
        'lastAssessedAt',
        'product',
        'currency',
        'unitOfMeasure',
      ].map((name) => [name, text]),
    ),
    specification: { type: 'array', items: { type: 'object', additionalProperties: true } },
    ...Object.fromEntries(DIMENSIONS.map((name) => [name, named])),
    series: { type: 'array', items: point },
  },
};
const response = {
  200: { type: 'object', properties: { data: { type: 'array', items: record } } },
};

const app = Fastify({ logger: false, bodyLimit: 1 << 20 });
app.post('/', { schema: { response } }, async (request) => {
  const body = request.body as RequestBody;
  const prices = await pricesOf(body);
  const points = body.options?.includeSeries
    ? await seriesOf(
        prices.map(({ id }) => id),
        body,
      )
    : new Map<number, unknown[]>();
  return { data: prices.map((price) => ({ ...price, series: points.get(price.id) ?? [] })) };
});
console.log(`ready ${await app.listen({ port: 0, host: '127.0.0.1' })}`);
