import {
  ClusterRegistry,
  Counter,
  collectDefaultMetrics,
  Histogram,
  Registry,
} from '@prometheus-io/client';
import { PROBLEMS } from '../errors.ts';

/** What is known of a request once it is over. */
interface Observed {
  /** The id of the operation, never an address. */
  readonly operation: string;
  readonly status: string;
  readonly seconds: number;
  readonly bytes: number;
}

/** What one process counts of itself, for Prometheus. */
export interface Metrics {
  readonly registry: Registry;
  observe(request: Observed): void;
  /** Counts a refusal, or an answer that broke off, by the code of its problem. */
  refused(code: string): void;
}

/** Up to the deadline, dense where answers are. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Metrics of a process; what others tell of themselves is added by `watchSources`.
 * @param log its log, which counts the lines that it had to drop
 */
export function metricsOf(log: { readonly linesLost: number } = { linesLost: 0 }): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // Quantiles of several workers cannot be added up; the histogram beside it can.
  registry.removeSingleMetric('nodejs_eventloop_utilization_summary');
  const duration = new Histogram({
    name: 'prices_request_duration_seconds',
    help: 'Time from the headers of a request to the end of its answer',
    labelNames: ['operation', 'status'],
    buckets: SECONDS,
    registers,
  });
  const bytes = new Counter({
    name: 'prices_response_bytes_total',
    help: 'Bytes sent for answers, with their headers',
    labelNames: ['operation'],
    registers,
  });
  const refusals = new Counter({
    name: 'prices_refusals_total',
    help: 'Requests that were refused or broke off, by the code of the problem',
    labelNames: ['code'],
    registers,
  });
  // From 0 on: Prometheus sees no increase in a number that it meets for the first time.
  for (const code of Object.keys(PROBLEMS)) refusals.inc({ code }, 0);
  new Counter({
    name: 'prices_log_lines_lost_total',
    help: 'Log lines that were dropped because the log could not be written',
    registers,
    collect() {
      this.reset();
      this.inc(log.linesLost);
    },
  });
  return {
    registry,
    observe: (request) => {
      const { operation, status } = request;
      duration.observe({ operation, status }, request.seconds);
      bytes.inc({ operation }, request.bytes);
    },
    refused: (code) => refusals.inc({ code }),
  };
}

/** The metrics of all workers together, for the process that owns the port. */
export function clusterExposition() {
  const registry = new ClusterRegistry();
  return { contentType: registry.contentType, metrics: () => registry.clusterMetrics() };
}

/**
 * Lets the process that owns the port ask for the metrics of this one.
 * @returns a function that reports them for the last time, so that counters keep their values
 */
export function answerToPrimary({ registry }: Metrics): () => Promise<void> {
  ClusterRegistry.setRegistries([registry]);
  // Its types do not know the method yet.
  const worker = new ClusterRegistry() as unknown as { shutdown(): Promise<void> };
  return () => {
    // Counters outlive the process; gauges such as memory end with it.
    for (const { name, type } of registry.getMetricsAsArray()) {
      if (type !== 'counter' && type !== 'histogram') registry.removeSingleMetric(name);
    }
    return worker.shutdown();
  };
}
