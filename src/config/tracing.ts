import { ConfigError } from './config.ts';

type Env = Readonly<Record<string, string | undefined>>;

const ADDRESSES = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'];

/** Which requests are traced: what the caller decided, unless that does not count; else a share. */
export interface Sampling {
  readonly isOfParent: boolean;
  /** From 0, none, to 1, all. */
  readonly share: number;
}

/** Where traces are sent, and which. */
interface TracingSettings {
  /** Scheme, host and port: the address may hold a secret. */
  readonly origin: string;
  readonly sampling: Sampling;
  /** What is done otherwise than a variable says; null where nothing is. */
  readonly warning: string | null;
}

/** The first of some variables that has a value. */
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

/** The protocol that collectors take by default is no error: they take JSON at the same address. */
function warningOf(env: Env): string | null {
  const { name, value } = firstOf(env, PROTOCOLS) ?? { name: '', value: 'http/json' };
  if (value === 'http/json') return null;
  if (value === 'http/protobuf') return `${name}: traces are sent as http/json, not ${value}`;
  throw new ConfigError(`${name}: traces are sent over HTTP only, as http/json`);
}

/**
 * Reads OpenTelemetry's own variables; null where no traces are wanted.
 * @throws ConfigError naming the first variable that is not valid
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
