import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, gunzipSync, gzipSync, zstdDecompressSync } from 'node:zlib';
import { type Served, serve } from './child.ts';
import type { Cluster } from './cluster.ts';
import { driverOf, type HttpRequest } from './http-client.ts';
import { waitUntilIdle } from './idle.ts';
import {
  askNaive,
  askPlatformatic,
  askPostgraphile,
  serviceRequest,
  WORKLOADS,
  type Workload,
} from './workloads.ts';

/** A server that answers workloads, and its request format. */
export interface Contender {
  readonly name: string;
  readonly served: Served;
  /** Null if the contender skips the workload. */
  ask(workload: Workload): HttpRequest | null;
}

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** One key for all requests. */
const UNLIMITED = { RATE_PER_MINUTE: '0', CONCURRENT_MAX: '0', RUNNING_MAX: '0' };

/** Disables load shedding: 64 concurrent answers from SQL take long. */
const PATIENT = {
  PRICE_BOOK_BYTES: '0',
  WAITING_MS_MAX: '60000',
  WAITING_MAX: '10000',
  REQUEST_DEADLINE_MS: '600000',
  DATABASE_STATEMENT_TIMEOUT_MS: '600000',
};

/** Starts the service of this or another checkout, with further settings. */
export async function startService(
  cluster: Cluster,
  settings: Readonly<Record<string, string>> = {},
  root: string = file('..'),
): Promise<Served> {
  const port = await freePort();
  const env = {
    DATABASE_URL: cluster.url,
    PORT: String(port),
    LOG_LEVEL: 'warn',
    ...UNLIMITED,
    ...settings,
  };
  const { NODE_FLAGS } = await import(join(root, 'src/std/program.ts'));
  return serve(join(root, 'bench/servers/service.ts'), [], env, NODE_FLAGS);
}

/** Answers of the service as files, for a server that only sends bytes. */
async function startWith(
  server: string,
  bodies: ReadonlyMap<string, Buffer>,
  env: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), 'prices-bench-raw-'));
  await mkdir(folder, { recursive: true });
  for (const [name, body] of bodies) await writeFile(join(folder, name), body);
  const served = await serve(file(server), [folder], env);
  await rm(folder, { recursive: true });
  return served;
}

/** The bytes that the service sends for each workload. */
async function bodiesOf(service: Served, key: string, past: string): Promise<Map<string, Buffer>> {
  const driver = driverOf(service.address, 1);
  const bodies = new Map<string, Buffer>();
  for (const workload of WORKLOADS) {
    const { status, body } = await driver.send(serviceRequest(workload, key, past), true);
    if (status !== 200 || !body) throw new Error(`${workload.name} answered ${status}`);
    bodies.set(workload.name, body);
  }
  driver.close();
  return bodies;
}

/** The size of a compressed answer against that by `gzip -1`. */
export interface CodedSize {
  readonly workload: string;
  readonly bytes: number;
  readonly gzipBytes: number;
}

const DECODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

/** Compares the answers of workloads with a content coding. */
export const codedSizes = (bodies: ReadonlyMap<string, Buffer>): CodedSize[] =>
  WORKLOADS.flatMap(({ name, headers }) => {
    const decode = DECODERS[headers?.['accept-encoding'] ?? ''];
    const body = bodies.get(name);
    if (decode === undefined || body === undefined) return [];
    const { length } = gzipSync(decode(body), { level: 1 });
    return [{ workload: name, bytes: body.length, gzipBytes: length }];
  });

/** The workloads of other contenders: without other encodings of the same data. */
const isPlain = ({ name }: Workload): boolean => /^W[1-4]$/.test(name);

/** Starts all contenders. The peers come from `bench/node_modules`. */
export async function startContenders(cluster: Cluster): Promise<{
  readonly contenders: readonly Contender[];
  readonly bodies: ReadonlyMap<string, Buffer>;
}> {
  const env = { DATABASE_URL: cluster.url };
  const { key, past } = cluster;
  const book = await startService(cluster);
  const plain = await startService(cluster, PATIENT);
  // Filling the price book is a cost of the start, which is measured separately.
  await waitUntilIdle(cluster, book.pid);
  const bodies = await bodiesOf(book, key, past);
  const ids = new Map<string, readonly number[]>();
  for (const workload of WORKLOADS) ids.set(workload.name, await cluster.idsOf(workload.codes));
  const of = (
    name: string,
    served: Served,
    ask: (workload: Workload) => HttpRequest | null,
  ): Contender => ({
    name,
    served,
    ask,
  });
  const raw = (workload: Workload): HttpRequest => ({
    method: 'POST',
    path: `/${workload.name}`,
    headers: { 'content-type': 'application/json' },
    body: askNaive(workload).body,
  });
  const onlyPlain = (ask: (workload: Workload) => HttpRequest) => (workload: Workload) =>
    isPlain(workload) ? ask(workload) : null;
  const contenders = [
    of('raw', await startWith('./servers/raw.ts', bodies), raw),
    of('stack', await startWith('./servers/stack.ts', bodies, { API_KEY: key }), (workload) =>
      ['W1', 'W2'].includes(workload.name)
        ? { ...raw(workload), headers: { ...raw(workload).headers, 'x-api-key': key } }
        : null,
    ),
    of('hello', await serve(file('./servers/hello.ts'), [], {}), (workload) =>
      workload.name === 'W1' ? askNaive(workload) : null,
    ),
    of('service', book, (workload) => serviceRequest(workload, key, past)),
    of('service, SQL', plain, (workload) =>
      workload.isKept ? null : serviceRequest(workload, key, past),
    ),
    of('naive', await serve(file('./servers/naive.ts'), [], env), onlyPlain(askNaive)),
    of(
      'PostGraphile',
      await serve(file('./peers/postgraphile.mjs'), [], env),
      onlyPlain(askPostgraphile),
    ),
    of(
      'Platformatic',
      await serve(file('./peers/platformatic.mjs'), [], env),
      onlyPlain((workload) => askPlatformatic(workload, ids.get(workload.name) ?? [])),
    ),
  ];
  return { contenders, bodies };
}
