import type { Logger } from 'pino';
import { tracingSettingsOf } from '../config/tracing.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { VERSION } from '../version.ts';
import type { Life } from './life.ts';
import { tellOnce } from './told-once.ts';

/**
 * Sends traces when the environment says where to. Without it nothing of OpenTelemetry is loaded,
 * and no request pays for it.
 */
export async function openTraces(logger: Logger, life: Life): Promise<Tracing | undefined> {
  const settings = tracingSettingsOf(process.env);
  if (settings === null) return undefined;
  const { origin, sampling } = settings;
  const about = 'traces';
  const { openTracing } = await import('../tracing/tracing.ts');
  const onError = (error: unknown): void => {
    // Once a minute, and never what the collector said.
    const state = new Date().toISOString().slice(0, 16);
    const why = (error as { code?: unknown } | null)?.code ?? (error as Error | null)?.name;
    const line = `${origin} does not take traces (${why}); those of this time are lost`;
    tellOnce(logger, { about, state, level: 'warn', line });
  };
  const tracing = openTracing({ version: VERSION, pid: process.pid, sampling, onError });
  life.atEnd(() => tracing.end());
  tellOnce(logger, { about, state: origin, level: 'info', line: `traces are sent to ${origin}` });
  return tracing;
}
