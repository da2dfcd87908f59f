import { ClusterRegistry } from '@prometheus-io/client';
import type { Metrics } from './metrics.ts';

/** The metrics of all workers together, asked for by the process that owns the port. */
export function clusterExposition() {
  const registry = new ClusterRegistry();
  return { contentType: registry.contentType, metrics: () => registry.clusterMetrics() };
}

/**
 * Lets the process that owns the port ask for the metrics of this one.
 * @returns how to tell them for the last time, so that what was counted stays counted
 */
export function answerToPrimary({ registry }: Metrics): () => Promise<void> {
  ClusterRegistry.setRegistries([registry]);
  // Its types do not know the method yet.
  const worker = new ClusterRegistry() as unknown as { shutdown(): Promise<void> };
  return () => {
    // What was counted stays; what a process has at the moment, such as memory, goes with it.
    for (const { name, type } of registry.getMetricsAsArray()) {
      if (type !== 'counter' && type !== 'histogram') registry.removeSingleMetric(name);
    }
    return worker.shutdown();
  };
}
