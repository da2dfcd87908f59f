import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { FORMATS, type Format } from '../src/contract/schemas/formats.ts';
import { run } from './child.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import { memoryOf, resetPeak } from './cpu.ts';
import { WIDEST_MARKET, writeWidest } from './dataset.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';

const COMMANDS = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

/** Seven keys, each with as many slow readers as a key may have. */
const KEYS = 7;
const READERS = 10;

/** The limits of a service with its defaults, which other benchmarks disable. */
const LIMITS = { RUNNING_MAX: '64', CONCURRENT_MAX: String(READERS) };

/** Time in which stuck answers are observed. STALL_TIMEOUT_MS drops their readers later. */
const STUCK_MS = 3_000;

const START_MS = 20_000;

/** The largest answers of one kind. */
interface Kind {
  readonly name: string;
  readonly format: Format;
  readonly options: object;
  readonly coding?: string;
  /** True to read a past revision, which the price book does not have. */
  readonly isPast?: true;
}

const SERIES = { includeSeries: true };
const CONVERTED = { ...SERIES, currency: 'EUR', unitOfMeasure: 'lb' };
const WIDE = { ...SERIES, layout: 'wide' };

const KINDS: readonly Kind[] = [
  { name: 'wide, CSV', format: 'csv', options: WIDE },
  { name: 'wide, rows, past', format: 'rows', options: WIDE, isPast: true },
  { name: 'wide, converted', format: 'csv', options: { ...CONVERTED, layout: 'wide' } },
  { name: 'JSON', format: 'json', options: SERIES },
  { name: 'JSON, past', format: 'json', options: SERIES, isPast: true },
  { name: 'JSON, converted, Brotli', format: 'json', options: CONVERTED, coding: 'br' },
  { name: 'JSON, past, zstd', format: 'json', options: SERIES, coding: 'zstd', isPast: true },
  { name: 'CSV', format: 'csv', options: SERIES },
  { name: 'Parquet', format: 'parquet', options: SERIES },
  { name: 'Parquet, converted', format: 'parquet', options: CONVERTED },
  { name: 'Arrow', format: 'arrow', options: SERIES },
  { name: 'Arrow, converted', format: 'arrow', options: CONVERTED },
];

/** A number of which each request has another, so that no answer is shared. */
let requests = 0;

/** A slow reader: it takes the first bytes of its answer, and no more. */
class SlowReader {
  readonly #socket: Socket;
  status = 0;

  constructor(address: string, past: string, key: string, kind: Kind) {
    requests += 1;
    const dateTo = new Date(Date.UTC(2030, 0, requests)).toISOString().slice(0, 10);
    const body = JSON.stringify({
      filters: { dateTo },
      options: { ...kind.options, ...(kind.isPast ? { asOf: past } : {}) },
    });
    const { hostname, port } = new URL(address);
    this.#socket = connect(Number(port), hostname);
    this.#socket.on('error', () => {});
    this.#socket.once('data', (bytes: Buffer) => {
      this.#socket.pause();
      this.status = Number(/^HTTP\/1\.1 (\d+)/.exec(bytes.toString('latin1'))?.[1]);
    });
    this.#socket.write(
      `POST /v3/prices/${WIDEST_MARKET} HTTP/1.1\r\nHost: bench\r\nx-api-key: ${key}\r\n` +
        `Accept: ${FORMATS[kind.format].media}\r\n` +
        `Accept-Encoding: ${kind.coding ?? 'identity'}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  leave(): void {
    this.#socket.destroy();
  }
}

/** The memory of the service while slow readers hold answers of one kind. */
export interface HeldMemory {
  readonly name: string;
  readonly answers: number;
  readonly refused: number;
  /** Before, while they hold their answers, and at the peak. */
  readonly beforeBytes: number;
  readonly heldBytes: number;
  readonly peakBytes: number;
}

async function newKeys(url: string): Promise<string[]> {
  const keys: string[] = [];
  for (let at = 0; at < KEYS; at += 1) {
    const args = ['keys', 'create', '--name', `slow ${at}`, '--scope', 'prices:*', '--json'];
    const made = await run(process.execPath, [COMMANDS, ...args], { DATABASE_URL: url });
    keys.push((JSON.parse(made) as { key: string }).key);
  }
  return keys;
}

async function loadWidest(url: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'prices-widest-'));
  const [descriptions, series] = await writeWidest(folder);
  for (const args of [
    ['ndjson', descriptions],
    ['csv', series],
  ]) {
    await run(process.execPath, [COMMANDS, 'load', ...args], { DATABASE_URL: url });
  }
  await rm(folder, { recursive: true });
}

/**
 * Measures the memory of one process while seven keys hold ten of the largest answers each: of each
 * kind, and finally of all kinds at once.
 */
export async function measureMemory(cluster: Cluster): Promise<HeldMemory[]> {
  log('loading the market of the largest answers');
  await loadWidest(cluster.url);
  const past = new Date().toISOString();
  await cluster.query(`do $$ begin
    perform open_revision('a correction of the benchmark');
    update series set mid = mid + 0.01 where date = '2024-03-14' and price_id =
      (select min(id) from price where code like 'WIDEST-%');
  end $$`);
  const keys = await newKeys(cluster.url);
  const served = await startService(cluster, LIMITS);
  await waitUntilIdle(cluster, served.pid);
  const measured: HeldMemory[] = [];
  const attack = async (name: string, kindOf: (reader: number) => Kind): Promise<void> => {
    log(`${KEYS * READERS} slow readers: ${name}`);
    resetPeak(served.pid, writeFileSync);
    const before = memoryOf(served.pid).now;
    const readers = keys.flatMap((key, at) =>
      Array.from(
        { length: READERS },
        (_, index) => new SlowReader(served.address, past, key, kindOf(at * READERS + index)),
      ),
    );
    const since = performance.now();
    const isBegun = (): boolean => readers.every(({ status }) => status !== 0);
    while (!isBegun() && performance.now() - since < START_MS) await pause(50);
    await pause(STUCK_MS);
    const { now, peak } = memoryOf(served.pid);
    const counted = (wanted: number): number =>
      readers.filter(({ status }) => status === wanted).length;
    measured.push({
      name,
      answers: counted(200),
      refused: counted(503),
      beforeBytes: before,
      heldBytes: now,
      peakBytes: peak,
    });
    for (const reader of readers) reader.leave();
    await waitUntilIdle(cluster, served.pid);
    log(JSON.stringify(measured.at(-1)));
  };
  for (const kind of KINDS) await attack(kind.name, () => kind);
  await attack('all kinds at once', (reader) => KINDS[reader % KINDS.length] as Kind);
  await served.stop();
  return measured;
}
