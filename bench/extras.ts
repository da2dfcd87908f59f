import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MARKETS } from '../src/catalog/markets.ts';
import { run, type Served, serve } from './child.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import { cpuSince, memoryOf } from './cpu.ts';
import { MARKET } from './dataset.ts';
import { type Burst, burst, driverOf, type HttpRequest, percentile } from './http-client.ts';
import { longestPause } from './loop-pause.ts';
import { askByGet, serviceRequest, WORKLOADS, type Workload } from './workloads.ts';

const DOWNLOADS = fileURLToPath(new URL('./servers/downloads.ts', import.meta.url));

const workload = (name: string): Workload => {
  const found = WORKLOADS.find((each) => each.name === name);
  if (!found) throw new Error(`there is no workload ${name}`);
  return found;
};

export interface Bare {
  readonly perSecond: number;
  readonly pgMs: number;
}

/**
 * Runs the prepared statement of a workload's series by pgbench, without HTTP and JSON. Returns
 * null if pgbench is not installed.
 */
export async function bareSql(
  cluster: Cluster,
  name: string,
  connections: number,
): Promise<Bare | null> {
  const { codes, range } = workload(name);
  const ids = await cluster.idsOf(codes);
  const folder = await mkdtemp(join(tmpdir(), 'prices-bench-sql-'));
  const script = join(folder, 'series.sql');
  await writeFile(
    script,
    `select price_id, date, low, mid, high, published_at, corrections from series
     where price_id = any('{${ids}}') and date between '${range?.from}' and '${range?.to}'
     order by price_id, date;\n`.replaceAll(/\s+/g, ' '),
  );
  const spent = cpuSince(() => cluster.pids());
  try {
    const args = ['-n', '-M', 'prepared', '-c', String(connections), '-T', '2', '-f', script];
    const watched = pause(1_500).then(spent);
    const out = await run('pgbench', [...args, cluster.url], {});
    const perSecond = Number(/^tps = ([\d.]+)/m.exec(out)?.[1]);
    return { perSecond, pgMs: (await watched) / (perSecond * 1.5) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/**
 * p50 and p99 of small requests in milliseconds, alone and during downloads, and the longest pause
 * of the event loop during downloads.
 */
export interface Downloads {
  readonly alone: { readonly p50: number; readonly p99: number };
  readonly beside: { readonly p50: number; readonly p99: number };
  readonly longestPauseMs: number;
}

/** W2 alone and while two different W4 downloads run, over 8 connections. */
export async function duringDownloads(service: Served, key: string): Promise<Downloads> {
  const small = driverOf(service.address, 8);
  const ask = serviceRequest(workload('W2'), key);
  const limits = { ms: 4_000, least: 100, status: 200 };
  const alone = await burst(small, ask, 8, limits);
  const downloads = await serve(DOWNLOADS, [service.address, key], {});
  let beside = alone;
  const longestPauseMs = await longestPause(service, async () => {
    beside = await burst(small, ask, 8, limits);
  });
  await downloads.stop();
  small.close();
  const of = ({ latenciesMs }: Burst) => ({
    p50: percentile(latenciesMs, 0.5),
    p99: percentile(latenciesMs, 0.99),
  });
  return { alone: of(alone), beside: of(beside), longestPauseMs };
}

/** A client that reads the head of an answer and then stalls. */
function stalledReader(address: string, { path, headers, body }: HttpRequest): Promise<Socket> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    const fields = { ...headers, host: hostname, 'content-length': body.length };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.on('error', reject);
    socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
    socket.once('data', () => {
      socket.pause();
      resolve(socket);
    });
  });
}

/** Memory per stalled reader, for eight readers of W4, in bytes. */
export async function memoryOfSlowReaders(service: Served, key: string): Promise<number> {
  const streams = 8;
  const before = memoryOf(service.pid).now;
  const ask = serviceRequest(workload('W4'), key);
  const sockets = await Promise.all(
    Array.from({ length: streams }, () => stalledReader(service.address, ask)),
  );
  await pause(2_000);
  const after = memoryOf(service.pid).now;
  for (const socket of sockets) socket.destroy();
  return (after - before) / streams;
}

/** A conditional GET of W3 that is answered 304: CPU milliseconds of process and PostgreSQL. */
export async function notModified(cluster: Cluster, service: Served): Promise<number> {
  const driver = driverOf(service.address, 1);
  const { headers } = await driver.send(askByGet(workload('W3'), cluster.key));
  const ask = askByGet(workload('W3'), cluster.key, String(headers['etag']));
  await burst(driver, ask, 1, { ms: 300, least: 10, status: 304 });
  const spent = cpuSince(() => [...cluster.pids(), service.pid]);
  const { requests } = await burst(driver, ask, 1, { ms: 1_500, least: 10, status: 304 });
  driver.close();
  return spent() / requests;
}

export interface Freshness {
  readonly commits: number;
  /** Answers that lacked the preceding commit. */
  readonly stale: number;
  readonly quietP99: number;
  readonly afterCommitP99: number;
}

/** Measures the freshness and the latency of the first answer after each of some corrections. */
export async function freshness(cluster: Cluster, service: Served): Promise<Freshness> {
  const driver = driverOf(service.address, 1);
  const ask = serviceRequest(workload('W2'), cluster.key);
  const quiet: number[] = [];
  for (let n = 0; n < 300; n += 1) quiet.push((await driver.send(ask)).lastMs);
  const [id] = await cluster.idsOf(workload('W2').codes.slice(0, 1));
  const after: number[] = [];
  let stale = 0;
  const commits = 300;
  for (let n = 0; n < commits; n += 1) {
    const mid = `15000.${String(100 + (n % 900))}1`;
    await cluster.query(`do $$ begin perform open_revision('benchmark');
      update series set low = ${mid}, mid = ${mid}, high = ${mid}
        where price_id = ${id} and date = '2024-03-15'; end $$`);
    const { lastMs, body } = await driver.send(ask, true);
    after.push(lastMs);
    if (!body?.includes(`"mid":${mid}`)) stale += 1;
  }
  driver.close();
  const p99 = (values: readonly number[]): number => percentile(values, 0.99);
  return { commits, stale, quietP99: p99(quiet), afterCommitP99: p99(after) };
}

/** Seconds from process start to the first correct answer to W2. */
export async function startToAnswer(cluster: Cluster, right: Served): Promise<number> {
  const ask = serviceRequest(workload('W2'), cluster.key);
  const other = driverOf(right.address, 1);
  const { body: expected } = await other.send(ask, true);
  other.close();
  const began = performance.now();
  const service = await startService(cluster);
  const driver = driverOf(service.address, 1);
  const { status, body } = await driver.send(ask, true);
  const seconds = (performance.now() - began) / 1000;
  driver.close();
  await service.stop();
  if (status !== 200 || !expected || !body?.equals(expected)) {
    throw new Error(`the first answer was not right: ${status}`);
  }
  return seconds;
}

/** CPU milliseconds of series requested for the first time, summed over the markets. */
export interface FirstTime {
  readonly nativeMs: number;
  readonly convertedMs: number;
  readonly gzipMs: number;
  /** The same as gzip from SQL. */
  readonly gzipSqlMs: number;
}

/**
 * Requests a year of every other market, once native, once converted and once as gzip.
 * @param plain the service from SQL
 */
export async function firstTime(
  cluster: Cluster,
  service: Served,
  plain: Served,
): Promise<FirstTime> {
  const driver = driverOf(service.address, 1);
  const plainDriver = driverOf(plain.address, 1);
  const cost = async (market: string, name: string, isPlain = false): Promise<number> => {
    const ask = { ...serviceRequest(workload(name), cluster.key), path: `/v3/prices/${market}` };
    const spent = cpuSince(() => [...cluster.pids(), (isPlain ? plain : service).pid]);
    const { status } = await (isPlain ? plainDriver : driver).send(ask);
    if (status !== 200) throw new Error(`${ask.path} answered ${status}`);
    return spent();
  };
  const sums = { nativeMs: 0, convertedMs: 0, gzipMs: 0, gzipSqlMs: 0 };
  for (const { slug } of MARKETS) {
    if (slug === MARKET) continue;
    sums.nativeMs += await cost(slug, 'W3');
    sums.convertedMs += await cost(slug, 'W5');
    sums.gzipMs += await cost(slug, 'W3gzip');
    sums.gzipSqlMs += await cost(slug, 'W3gzip', true);
  }
  driver.close();
  plainDriver.close();
  return sums;
}
