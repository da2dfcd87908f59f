import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FORMATS, type Format } from '../src/contract/schemas/formats.ts';
import { run, type Served } from './child.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import { cpuSince, memoryOf, resetPeak } from './cpu.ts';
import { MILLION_MARKET, writeMillion } from './dataset.ts';
import { driverOf, type HttpRequest } from './http-client.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';

const COMMANDS = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

/** The compared encodings of the same million points. */
const FORMS: readonly { readonly format: Format; readonly columns?: string }[] = [
  { format: 'json' },
  { format: 'ndjson' },
  { format: 'csv' },
  { format: 'csv', columns: 'short' },
  { format: 'rows', columns: 'short' },
  { format: 'parquet' },
  { format: 'parquet', columns: 'short' },
  { format: 'arrow' },
  { format: 'arrow', columns: 'short' },
  { format: 'xlsx', columns: 'short' },
];

/** The cost of a million points in one encoding. */
export interface FormCost {
  readonly name: string;
  readonly bytes: number;
  /** The first request of a process, which loads the format's modules, in milliseconds. */
  readonly coldFirstMs: number;
  /** Later requests, the best of all rounds. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly cpuMs: number;
  /** Peak memory of the process above its level before the first answer. */
  readonly moreBytes: number;
}

async function loadMillion(cluster: Cluster): Promise<void> {
  const { rows } = await cluster.query(`select from price where code = 'MILLION-000'`);
  if (rows.length > 0) return;
  log('loading a million points of one market');
  const folder = await mkdtemp(join(tmpdir(), 'prices-bench-million-'));
  const [prices, series] = await writeMillion(folder);
  const env = { DATABASE_URL: cluster.url };
  await run(process.execPath, [COMMANDS, 'load', 'ndjson', prices], env);
  await run(process.execPath, [COMMANDS, 'load', 'csv', series], env);
  await cluster.query('vacuum analyze');
  await rm(folder, { recursive: true });
}

const askFor = ({ format, columns }: (typeof FORMS)[number], key: string): HttpRequest => ({
  method: 'POST',
  path: `/v3/prices/${MILLION_MARKET}`,
  headers: { 'content-type': 'application/json', 'x-api-key': key, accept: FORMATS[format].media },
  body: JSON.stringify({ options: { includeSeries: true, ...(columns ? { columns } : {}) } }),
});

/** Warms a process up with a small answer. */
const warm = (service: Served, key: string): Promise<unknown> => {
  const driver = driverOf(service.address, 1);
  const body = JSON.stringify({ filters: { codes: ['MILLION-000'] }, options: {} });
  const ask = { ...askFor({ format: 'json' }, key), body };
  return Promise.all(Array.from({ length: 50 }, () => driver.send(ask))).finally(driver.close);
};

/** Measures one encoding in its own process, so that others do not affect its memory. */
async function costOf(
  cluster: Cluster,
  form: (typeof FORMS)[number],
  rounds: number,
): Promise<FormCost> {
  const service = await startService(cluster);
  try {
    await waitUntilIdle(cluster, service.pid);
    await warm(service, cluster.key);
    const driver = driverOf(service.address, 1);
    const ask = askFor(form, cluster.key);
    resetPeak(service.pid, writeFileSync);
    const before = memoryOf(service.pid).now;
    const cold = await driver.send(ask);
    if (cold.status !== 200) throw new Error(`${form.format} answered ${cold.status}`);
    const answers = [];
    const costs: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const spent = cpuSince(() => [service.pid]);
      answers.push(await driver.send(ask));
      costs.push(spent());
    }
    const moreBytes = memoryOf(service.pid).peak - before;
    driver.close();
    return {
      name: form.columns ? `${form.format}, ${form.columns} columns` : form.format,
      bytes: cold.bytes,
      coldFirstMs: cold.firstMs,
      firstMs: Math.min(...answers.map(({ firstMs }) => firstMs)),
      lastMs: Math.min(...answers.map(({ lastMs }) => lastMs)),
      cpuMs: Math.min(...costs),
      moreBytes,
    };
  } finally {
    await service.stop();
  }
}

/** Measures a million points of one market in each encoding, from the price book. */
export async function measureFormats(cluster: Cluster, rounds: number): Promise<FormCost[]> {
  await loadMillion(cluster);
  const costs: FormCost[] = [];
  for (const form of FORMS) {
    log(`a million points as ${form.format} ${form.columns ?? ''}`);
    costs.push(await costOf(cluster, form, rounds));
  }
  return costs;
}
