import { ConfigError } from './config.ts';

type Env = Readonly<Record<string, string | undefined>>;

const ADDRESSES = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'];

/** Selects the requests that are traced. */
export interface Sampling {
  /** True to follow the decision in `traceparent`, if the client sent one. */
  readonly isOfParent: boolean;
  /** Share of the other requests, from 0 to 1. */
  readonly share: number;
}

/** Destination and sampling of traces. */
interface TracingSettings {
  /** Scheme, host and port only, because the address may contain a secret. */
  readonly origin: string;
  readonly sampling: Sampling;
  /** A setting that is not followed, with its replacement; otherwise null. */
  readonly warning: string | null;
}

/** The first variable with a value. */
function firstOf(env: Env, names: readonly string[]) {
  const name = names.find((each) => (env[each] ?? '') !== '');
  return name === undefined ? null : { name, value: env[name] ?? '' };
}

function samplingOf(env: Env): Sampling {
  const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on';
  const root = name.replace(/^parentbased_/, '');
  if (!SAMPLERS.includes(root)) {
    const names = SAMPLERS.flatMap((each) => [each, `parentbased_${each}`]).join(', ');
    throw new ConfigError(`OTEL_TRACES_SAMPLER: must be one of ${names}`);
  }
  const given = env['OTEL_TRACES_SAMPLER_ARG'] || '1';
  const ratio = Number(given);
  if (root === 'traceidratio' && !(ratio >= 0 && ratio <= 1)) {
    throw new ConfigError('OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1');
  }
  const share = root === 'traceidratio' ? ratio : Number(root === 'always_on');
  return { isOfParent: root !== name, share };
}

/** http/protobuf, the default of collectors, only warns: they accept JSON at the same address. */
function warningOf(env: Env): string | null {
  const { name, value } = firstOf(env, PROTOCOLS) ?? { name: '', value: 'http/json' };
  if (value === 'http/json') return null;
  if (value === 'http/protobuf') return `${name}: traces are sent as http/json, not ${value}`;
  throw new ConfigError(`${name}: traces are sent over HTTP only, as http/json`);
}

/**
 * Reads OpenTelemetry's variables; null if tracing is disabled.
 * @throws ConfigError with the name of the first invalid variable
 */
export function tracingSettingsOf(env: Env): TracingSettings | null {
  const address = firstOf(env, ADDRESSES);
  const isOff = /^true$/i.test(env['OTEL_SDK_DISABLED'] ?? '');
  const exporter = env['OTEL_TRACES_EXPORTER'] || 'otlp';
  if (address === null || isOff || exporter === 'none') return null;
  if (exporter !== 'otlp') throw new ConfigError('OTEL_TRACES_EXPORTER: must be otlp or none');
  const { name, value } = address;
  if (!/^https?:\/\//.test(value) || !URL.canParse(value)) {
    throw new ConfigError(`${name}: must be the address of a collector, http:// or https://`);
  }
  return { origin: new URL(value).origin, sampling: samplingOf(env), warning: warningOf(env) };
}
