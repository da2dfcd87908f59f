import { readFile } from 'node:fs/promises';
import type { ServiceProcess } from './service-process.ts';
import { until } from './sockets.ts';

const ALERTS = new URL('../../../deploy/alerts.yml', import.meta.url);

/** Settings that enable the metrics listener. */
export const WITH_METRICS = { METRICS_PORT: '0' };

/** One value of a metric. */
export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The current samples of a service with `WITH_METRICS`, as Prometheus would scrape them. */
export async function samplesOf({
  running,
}: Pick<ServiceProcess, 'running'>): Promise<MetricSample[]> {
  const log = await running.until('stderr', /metrics are at [^"]+"/);
  const [, address = ''] = /metrics are at ([^"]+)"/.exec(log) ?? [];
  return samplesAt(address);
}

/** The samples at a metrics URL. */
export async function samplesAt(address: string): Promise<MetricSample[]> {
  const text = await (await fetch(address)).text();
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels, value]) => ({
    name,
    labels: Object.fromEntries(
      [...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, label, of]) => [label, of]),
    ),
    value: Number(value),
  }));
}

/** A metric with patterns of its labels. */
export interface Watched {
  readonly name: string;
  readonly labels: Readonly<Record<string, RegExp>>;
}

/** The sum of a service's samples of a metric. */
export async function counted(
  service: Pick<ServiceProcess, 'running'>,
  watched: Watched,
): Promise<number> {
  const labels = Object.entries(watched.labels);
  return (await samplesOf(service))
    .filter(({ name }) => name === watched.name)
    .filter((each) => labels.every(([label, of]) => of.test(each.labels[label] ?? '')))
    .reduce((sum, { value }) => sum + value, 0);
}

/** The pool connections of a service, all and in use. */
interface PoolCounts {
  readonly all: number;
  readonly inUse: number;
}

async function poolOf(service: Pick<ServiceProcess, 'running'>): Promise<PoolCounts> {
  const samples = await samplesOf(service);
  const sumOf = (of: string): number =>
    samples.filter(({ name }) => name === of).reduce((sum, { value }) => sum + value, 0);
  const all = sumOf('prices_pool_connections');
  return { all, inUse: all - sumOf('prices_pool_idle') };
}

/**
 * Waits until no pool connection of an idle service is in use, and returns the counts. Background
 * queries use one briefly; a leaked one would never be released.
 */
export async function poolAtRest(service: Pick<ServiceProcess, 'running'>): Promise<PoolCounts> {
  let pool = await poolOf(service);
  await until('every connection is back', async () => {
    pool = await poolOf(service);
    return pool.inUse === 0;
  });
  return pool;
}

/** The first metric and labels in the expression of an alert rule. */
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
