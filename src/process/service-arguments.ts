import { SECRETS } from '../config/environment.ts';
import { REMOVED_SETTINGS, SETTINGS, type Setting } from '../config/settings.ts';
import { UsageError } from '../std/base-errors.ts';
import { PROGRAM, VERSION } from '../std/program.ts';

const settingLine = ([name, setting]: [string, Setting]): string => {
  const { default: fallback, description } = setting;
  const usual = fallback === undefined ? '' : ` [${String(fallback)}]`;
  return `  ${name}${usual}\n      ${description}`;
};

const help = (): string => `Serves commodity prices.

  npm start                  on an embedded PostgreSQL with sample data, under DATA_DIR
  PORT=8080 npm start        settings are environment variables, or lines of a file .env

Everything else is a command: ${PROGRAM} --help

A secret can be read from a file: ${SECRETS.map((each) => `${each}_FILE`).join(', ')}.

Settings, with their defaults:
${Object.entries(SETTINGS).map(settingLine).join('\n')}
`;

/**
 * Output of `--help` and `--version`; null if the service should start.
 * @throws UsageError for any other argument
 */
export function argumentOutput(args: readonly string[]): string | null {
  const [first] = args[0] === 'serve' ? args.slice(1) : args;
  if (first === undefined) return null;
  if (first === '--help' || first === '-h') return help();
  if (first === '--version') return `${VERSION}\n`;
  if (/^--workers(=|$)/.test(first)) {
    throw new UsageError(`--workers is gone: ${REMOVED_SETTINGS['WORKERS']}`);
  }
  throw new UsageError(
    `"${first.slice(0, 64)}": the service takes settings from the environment, as in ` +
      'PORT=8080 npm start; npm start -- --help lists them',
  );
}
