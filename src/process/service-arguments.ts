import type { TSchema } from 'typebox';
import { faultOfSetting } from '../config/config.ts';
import { SECRETS } from '../config/environment.ts';
import { SETTINGS } from '../config/settings.ts';
import { PROGRAM } from '../std/program.ts';
import { VERSION } from '../version.ts';
import { UsageError } from './failure.ts';

const settingLine = ([name, schema]: [string, TSchema]): string => {
  const { default: fallback, description } = schema as { default?: unknown; description?: string };
  const usual = fallback === undefined ? '' : ` [${String(fallback)}]`;
  return `  ${name}${usual}\n      ${description}`;
};

const help = (): string => `Serves commodity prices.

  npm start                  on an embedded PostgreSQL with sample data, under DATA_DIR
  PORT=8080 npm start        settings are environment variables, or lines of a file .env
  npm start -- --workers 4   four processes behind one port; SIGHUP replaces them one by one

Everything else is a command: ${PROGRAM} --help

A secret may come from a file: ${SECRETS.map((each) => `${each}_FILE`).join(', ')}.

Settings, with their defaults:
${Object.entries(SETTINGS).map(settingLine).join('\n')}
`;

/** Takes the number of workers from the command line, which comes before the environment. */
function takeWorkers(args: readonly string[]): readonly string[] {
  const [first = '', second, ...rest] = args;
  const [option, given] = first.split('=');
  if (option !== '--workers') return args;
  const number = given ?? second ?? '';
  if (number === '') throw new UsageError('--workers: needs a number');
  const fault = faultOfSetting('WORKERS', number);
  // Nobody set WORKERS: what is told is what was written.
  if (fault !== null) throw new UsageError(`--workers: ${fault}`);
  process.env['WORKERS'] = number;
  return given === undefined ? rest : args.slice(1);
}

/**
 * What the service prints instead of serving, when it was started with an argument; else null.
 * @throws UsageError for any other argument: a misspelt one must not be passed over
 */
export function answerToArguments(args: readonly string[]): string | null {
  const [first] = takeWorkers(args[0] === 'serve' ? args.slice(1) : args);
  if (first === undefined) return null;
  if (first === '--help' || first === '-h') return help();
  if (first === '--version') return `${VERSION}\n`;
  throw new UsageError(
    `"${first.slice(0, 64)}": the service takes settings from the environment, as in ` +
      'PORT=8080 npm start; npm start -- --help lists them',
  );
}
