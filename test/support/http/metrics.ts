import { readFile } from 'node:fs/promises';
import type { Served } from './service-process.ts';
import { until } from './sockets.ts';

const ALERTS = new URL('../../../deploy/alerts.yml', import.meta.url);

/** Settings of a service whose metrics a test reads. */
export const TELLS_METRICS = { METRICS_PORT: '0' };

/** One value of a metric. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All that a service with `TELLS_METRICS` counts at the moment, as Prometheus would read it. */
export async function samplesOf({ running }: Pick<Served, 'running'>): Promise<Sample[]> {
  const log = await running.until('stderr', /metrics are at [^"]+"/);
  const [, address = ''] = /metrics are at ([^"]+)"/.exec(log) ?? [];
  return samplesAt(address);
}

/** All that is counted at the address of metrics. */
export async function samplesAt(address: string): Promise<Sample[]> {
  const text = await (await fetch(address)).text();
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels, value]) => ({
    name,
    labels: Object.fromEntries(
      [...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, label, of]) => [label, of]),
    ),
    value: Number(value),
  }));
}

/** A metric, and what its labels are. */
export interface Watched {
  readonly name: string;
  readonly labels: Readonly<Record<string, RegExp>>;
}

/** The sum of what a service counts of a metric. */
export async function counted(service: Pick<Served, 'running'>, watched: Watched): Promise<number> {
  const labels = Object.entries(watched.labels);
  return (await samplesOf(service))
    .filter(({ name }) => name === watched.name)
    .filter((each) => labels.every(([label, of]) => of.test(each.labels[label] ?? '')))
    .reduce((sum, { value }) => sum + value, 0);
}

/** The connections to the database that a service has, and those of them that are in use. */
interface PoolCounts {
  readonly all: number;
  readonly inUse: number;
}

async function poolOf(service: Pick<Served, 'running'>): Promise<PoolCounts> {
  const samples = await samplesOf(service);
  const sumOf = (of: string): number =>
    samples.filter(({ name }) => name === of).reduce((sum, { value }) => sum + value, 0);
  const all = sumOf('prices_pool_connections');
  return { all, inUse: all - sumOf('prices_pool_idle') };
}

/**
 * The connections of a service that nobody asks, once none is in use: it looks for news now and
 * then, and one that was lost would never come back.
 */
export async function poolAtRest(service: Pick<Served, 'running'>): Promise<PoolCounts> {
  let pool = await poolOf(service);
  await until('every connection is back', async () => {
    pool = await poolOf(service);
    return pool.inUse === 0;
  });
  return pool;
}

/** What the expression of an alert rule is about: its first metric, with its labels. */
export async function watchedBy(alert: string): Promise<Watched> {
  const rules = (await readFile(ALERTS, 'utf8')).split('- alert: ');
  const rule = rules.find((each) => each.startsWith(`${alert}\n`)) ?? '';
  const [, name, selectors = ''] = /(\w+)\{(.*?)\}/.exec(rule) ?? [];
  if (name === undefined) throw new Error(`there is no alert ${alert} of a metric`);
  const labels = [...selectors.matchAll(/(\w+)=(~?)"(.*?)"/g)].map(
    ([, label = '', isPattern, of = '']) => [
      label,
      new RegExp(`^(?:${isPattern ? of : of.replaceAll(/\W/g, '\\$&')})$`),
    ],
  );
  return { name, labels: Object.fromEntries(labels) };
}
