import type { Logger } from 'pino';
import { tracingSettingsOf } from '../config/tracing.ts';
import { VERSION } from '../std/program.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { Lifecycle } from './lifecycle.ts';
import { logStateChange } from './log.ts';

const TOPIC = 'traces';

/** Logs lost spans once a minute, without the response of the collector. */
export function lossLogger(logger: Logger, origin: string, now: () => number = Date.now) {
  let last = '';
  return (error: unknown): void => {
    const state = new Date(now()).toISOString().slice(0, 16);
    if (state === last) return;
    last = state;
    const why = (error as { code?: unknown } | null)?.code ?? (error as Error | null)?.name;
    const message = `${origin} does not accept traces (${why}); spans are lost meanwhile`;
    logStateChange(logger, { topic: TOPIC, state, level: 'warn', message });
  };
}

/** Enables tracing if the environment names a collector. Otherwise OpenTelemetry is not loaded. */
export async function openTraces(
  logger: Logger,
  lifecycle: Lifecycle,
): Promise<Tracing | undefined> {
  const settings = tracingSettingsOf(process.env);
  if (settings === null) return undefined;
  const { origin, sampling, warning } = settings;
  const { openTracing } = await import('../tracing/tracing.ts');
  const onError = lossLogger(logger, origin);
  const tracing = openTracing({ version: VERSION, pid: process.pid, sampling, onError });
  lifecycle.onShutdown(() => tracing.end());
  logStateChange(logger, {
    topic: TOPIC,
    state: origin,
    level: 'info',
    message: `traces are sent to ${origin}`,
  });
  if (warning) {
    logStateChange(logger, {
      topic: 'encoding of traces',
      state: 'JSON',
      level: 'warn',
      message: warning,
    });
  }
  return tracing;
}
