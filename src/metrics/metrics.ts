import { Counter, collectDefaultMetrics, Histogram, Registry } from '@prometheus-io/client';
import { PROBLEMS } from '../errors.ts';

/*
 * The metrics for Prometheus: this file counts requests and log lines, and `sources.ts` reads the
 * state of all other parts when they are scraped.
 */

/** A completed request. */
interface CompletedRequest {
  /** Operation id, never a path, which would have unbounded cardinality. */
  readonly operation: string;
  readonly status: string;
  readonly seconds: number;
  readonly bytes: number;
}

/** The Prometheus metrics of the service. */
export interface Metrics {
  readonly registry: Registry;
  observe(request: CompletedRequest): void;
  /** Counts a rejected request, or a truncated answer, by problem code. */
  refused(code: string): void;
  /** Counts a connection that was closed at once, because there are too many. */
  connectionRefused(): void;
}

/** Histogram buckets: dense at usual durations, up to the deadline. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Creates the metrics. `watchSources` adds those of the parts of the service.
 * @param log counts the log lines that it dropped
 */
export function metricsOf(log: { readonly linesLost: number } = { linesLost: 0 }): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // Quantiles of several processes cannot be aggregated; the histogram can.
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
    help: 'Rejected requests and truncated answers, by problem code',
    labelNames: ['code'],
    registers,
  });
  const connections = new Counter({
    name: 'prices_connections_refused_total',
    help: 'Connections that were closed at once: too many of all, or of one network',
    registers,
  });
  // Initialised to 0, because Prometheus sees no increase in the first sample of a series.
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
    connectionRefused: () => connections.inc(),
  };
}
