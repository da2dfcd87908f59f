import type { Logger } from 'pino';
import { tracingSettingsOf } from '../config/tracing.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { VERSION } from '../version.ts';
import type { Life } from './life.ts';
import { tellOnce } from './told-once.ts';

const ABOUT = 'traces';

/** Tells of spans that were lost: once a minute, and never what the collector said. */
export function lossTeller(logger: Logger, origin: string, now: () => number = Date.now) {
  let last = '';
  return (error: unknown): void => {
    const state = new Date(now()).toISOString().slice(0, 16);
    if (state === last) return;
    last = state;
    const why = (error as { code?: unknown } | null)?.code ?? (error as Error | null)?.name;
    const line = `${origin} does not take traces (${why}); those of this time are lost`;
    tellOnce(logger, { about: ABOUT, state, level: 'warn', line });
  };
}

/**
 * Sends traces when the environment says where to. Without it nothing of OpenTelemetry is loaded,
 * and no request pays for it.
 */
export async function openTraces(logger: Logger, life: Life): Promise<Tracing | undefined> {
  const settings = tracingSettingsOf(process.env);
  if (settings === null) return undefined;
  const { origin, sampling, warning } = settings;
  const { openTracing } = await import('../tracing/tracing.ts');
  const onError = lossTeller(logger, origin);
  const tracing = openTracing({ version: VERSION, pid: process.pid, sampling, onError });
  life.atEnd(() => tracing.end());
  tellOnce(logger, {
    about: ABOUT,
    state: origin,
    level: 'info',
    line: `traces are sent to ${origin}`,
  });
  const state = 'as JSON';
  if (warning)
    tellOnce(logger, { about: 'how traces are sent', state, level: 'warn', line: warning });
  return tracing;
}
