import { type Config, configOf } from '../../../src/config/config.ts';
import { CONSTANTS } from '../../../src/config/constants.ts';
import { NO_LIMITS } from './no-limits.ts';

/** Settings as in the environment, and constants of the service. */
export type TestSettings = Readonly<Record<string, string | number>>;

/** The configuration of a test: without limits, and with settings and constants of its own. */
export function testConfig(values: TestSettings = {}): Config {
  const env: Record<string, string> = { ...NO_LIMITS };
  const constants: Record<string, number> = { OPEN_PER_SECOND: 100_000 };
  for (const [name, value] of Object.entries(values)) {
    if (name in CONSTANTS) constants[name] = Number(value);
    else env[name] = String(value);
  }
  return { ...configOf(env), ...constants };
}
