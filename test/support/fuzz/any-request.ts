import { METHODS, PERIODS } from '../../../src/catalog/analytics.ts';
import { COMPUTING, type OptionName } from '../../../src/contract/schemas/options.ts';
import type { TestDatabase } from '../database/database.ts';
import type { Service } from '../http/service.ts';
import { SPECIFIED } from '../prices/specification.ts';

/** A request for prices. */
export interface PriceRequest {
  readonly slug: string;
  readonly filters: object;
  readonly options: object;
}

const TARGETS: Readonly<Partial<Record<OptionName, readonly (string | number)[]>>> = {
  currency: ['USD', 'EUR', 'CNY', 'jpy', 'KRW', 'SEK'],
  unitOfMeasure: ['t', 'kg', 'lb', 'Pound', 'kWh', 'mtu', 'cwt', 'troy ounce'],
  onUnconvertible: ['keep', 'omit', 'error'],
  decimals: [0, 3, 10],
  rates: ['period-mean', 'day'],
};

/** By market: codes and names that its filters take. */
export type ValuesByMarket = ReadonlyMap<
  string,
  { readonly codes: readonly string[]; readonly products: readonly string[] }
>;

/** The codes and products that there are now. */
export async function valuesOf({ pool }: Pick<TestDatabase, 'pool'>): Promise<ValuesByMarket> {
  const { rows } = await pool.query(`select m.slug, array_agg(distinct p.code) as codes,
      array_agg(distinct product.name) as products
    from price p join market m on m.id = p.market_id join product on product.id = p.product_id
    group by m.slug`);
  return new Map(rows.map(({ slug, ...each }) => [slug, each]));
}

/** Makes requests of every kind, about what there is and about what may come. */
export function anyRequest(random: () => number): (values: ValuesByMarket) => PriceRequest {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const chance = (part: number): boolean => random() < part;
  const day = (): string =>
    new Date(Date.UTC(2025, 9, 1) + Math.floor(random() * 280) * 86_400_000)
      .toISOString()
      .slice(0, 10);
  /** Options of every kind, each there now and then. */
  const optionsOf = (): object => {
    const options: Record<string, unknown> = {
      includeSeries: chance(0.7),
      includeSummary: chance(0.2),
      ...(chance(0.15) ? { strict: true } : {}),
    };
    for (const [name, values] of Object.entries(TARGETS)) {
      if (chance(0.5)) options[name] = pick(values);
    }
    if (chance(0.3)) {
      options['aggregate'] = {
        period: pick(PERIODS),
        method: pick(METHODS),
      };
    }
    if (options['includeSeries'] && !('aggregate' in options) && chance(0.2)) {
      options['movingAverage'] = pick([1, 3, 20, 250]);
    }
    if (chance(0.3)) options['vat'] = pick(['exclude', 'as-published']);
    const computes = COMPUTING.some((name) => name in options);
    if (!computes) delete options['decimals'];
    return options;
  };
  return (values) => {
    const { slug } = pick(SPECIFIED);
    const { codes = [], products = [] } = values.get(slug) ?? {};
    const filters: Record<string, unknown> = chance(0.7)
      ? { codes: [pick(codes), pick([...codes, 'CP-NI-7777'])] }
      : { products: [pick(products), `${pick(products)} (new)`] };
    const [from, to] = [day(), day()].toSorted();
    if (chance(0.8)) filters['dateFrom'] = from;
    if (chance(0.5)) filters['dateTo'] = to;
    return { slug, filters, options: optionsOf() };
  };
}

/** An answer as far as it does not change from one call to the next. */
export interface StableAnswer {
  readonly status: number;
  readonly text: string;
}

/** Asks without the check against openapi.yaml, which takes longer than the answer. */
export async function send(
  { app, key }: Pick<Service, 'app' | 'key'>,
  { slug, filters, options }: PriceRequest,
  past: object = {},
): Promise<StableAnswer> {
  const answer = await app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    headers: { 'x-api-key': key },
    payload: { filters, options: { ...options, ...past } },
  });
  const { statusCode: status, body } = answer;
  // A refusal differs from the next by the id of its request alone.
  return { status, text: body.replace(/"requestId":"[^"]+"/, '') };
}

/** Works on all, a few at a time, as a service is asked. */
export async function forAll<T>(
  all: readonly T[],
  work: (each: T) => Promise<void>,
): Promise<void> {
  const rest = all.values();
  const worker = async (): Promise<void> => {
    for (const each of rest) await work(each);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}
