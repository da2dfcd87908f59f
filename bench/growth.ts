import type { Served } from './child.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import { cpuSince } from './cpu.ts';
import { DAYS, MARKET_CODES } from './dataset.ts';
import { burst, driverOf, type HttpRequest } from './http-client.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';
import { serviceRequest, WORKLOADS } from './workloads.ts';

/** CPU of the service for answers of one size, milliseconds a request. */
export interface SizeCost {
  readonly points: number;
  readonly bytes: number;
  readonly bookMs: number;
  readonly sqlMs: number;
}

/** The cost of W2 and W3 with a table of one size, from the price book and from SQL. */
export interface TableCost {
  readonly points: number;
  readonly workload: string;
  readonly bookMs: number;
  readonly sqlMs: number;
}

/** Prices and days of the answers: 10, 100 … 652,250 points. */
const SIZES: readonly (readonly [number, number])[] = [
  [1, 10],
  [5, 20],
  [20, 50],
  [50, 200],
  [250, 260],
  [250, DAYS.length],
];

const sized = (prices: number, days: number, key: string): HttpRequest =>
  serviceRequest(
    {
      name: 'size',
      title: '',
      codes: [],
      range: null,
      filters: {
        codes: MARKET_CODES.slice(0, prices),
        dateFrom: DAYS[DAYS.length - days],
        dateTo: DAYS.at(-1),
      },
      options: { includeSeries: true },
    },
    key,
  );

/** The cost of a burst, milliseconds a request, and the bytes of the answer. */
async function burstCost(cluster: Cluster, served: Served, ask: HttpRequest) {
  const driver = driverOf(served.address, 1);
  const { bytes } = await driver.send(ask);
  const spent = cpuSince(() => [...cluster.pids(), served.pid]);
  const { requests } = await burst(driver, ask, 1, { ms: 500, least: 3, status: 200 });
  const ms = spent() / requests;
  driver.close();
  return { bytes, ms };
}

const ROUNDS = 5;

/** The least cost of some bursts. */
async function cost(cluster: Cluster, served: Served, ask: HttpRequest) {
  let least = { bytes: 0, ms: Number.POSITIVE_INFINITY };
  for (let round = 0; round < ROUNDS; round += 1) {
    const found = await burstCost(cluster, served, ask);
    if (found.ms < least.ms) least = found;
  }
  return least;
}

/** Measures the cost of an answer by its size. */
export async function sizeCurve(cluster: Cluster, book: Served, plain: Served) {
  const costs: SizeCost[] = [];
  for (const [prices, days] of SIZES) {
    log(`answers of ${prices * days} points`);
    const ask = sized(prices, days, cluster.key);
    const { bytes, ms: bookMs } = await cost(cluster, book, ask);
    const { ms: sqlMs } = await cost(cluster, plain, ask);
    costs.push({ points: prices * days, bytes, bookMs, sqlMs });
  }
  return costs;
}

/** A table with two services: with and without the price book. */
interface ServedTable {
  readonly cluster: Cluster;
  readonly book: Served;
  readonly plain: Served;
}

async function tableOf(cluster: Cluster): Promise<ServedTable> {
  const book = await startService(cluster);
  const plain = await startService(cluster, { PRICE_BOOK_BYTES: '0' });
  await waitUntilIdle(cluster, book.pid);
  return { cluster, book, plain };
}

/**
 * Measures the cost of W2 and W3 with several tables, alternately: the load of a machine varies
 * more from minute to minute than the tables differ.
 */
export async function tableCosts(clusters: readonly Cluster[]): Promise<TableCost[]> {
  const tables: ServedTable[] = [];
  for (const cluster of clusters) tables.push(await tableOf(cluster));
  const costs: TableCost[] = [];
  for (const workload of WORKLOADS.filter(({ name }) => name === 'W2' || name === 'W3')) {
    const least = tables.map(() => ({ bookMs: Infinity, sqlMs: Infinity }));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [index, { cluster, book, plain }] of tables.entries()) {
        const ask = serviceRequest(workload, cluster.key);
        const { bookMs = Infinity, sqlMs = Infinity } = least[index] ?? {};
        least[index] = {
          bookMs: Math.min(bookMs, (await burstCost(cluster, book, ask)).ms),
          sqlMs: Math.min(sqlMs, (await burstCost(cluster, plain, ask)).ms),
        };
      }
    }
    for (const [index, { points }] of clusters.entries()) {
      const { bookMs = Infinity, sqlMs = Infinity } = least[index] ?? {};
      costs.push({ points, workload: workload.name, bookMs, sqlMs });
    }
  }
  for (const { book, plain } of tables) {
    await book.stop();
    await plain.stop();
  }
  return costs;
}
