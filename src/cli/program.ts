import { Command, Help, type Option } from 'commander';
import { PROGRAM, VERSION } from '../std/program.ts';
import { masked } from '../std/secrets.ts';
import { command } from './command.ts';
import { addLate } from './late.ts';
import { addWithdraw } from './load/withdraw.ts';
import { addMcp } from './mcp/mcp.ts';
import { addOpenapi } from './openapi.ts';

/*
 * The command line. Each command is a file, or a folder with its subcommands; `command.ts` declares
 * options and output in one way for all of them.
 */

const FOOTER = `
Without DATABASE_URL the commands use the embedded PostgreSQL under DATA_DIR: the running
one if the service is up, else they start it for their own duration. All settings are
environment variables, or lines of a file .env; .env.example lists them.

Exit codes:
  0  done
  1  failed, or late found a late price
  2  the command line or a setting is wrong
  3  the data was refused; nothing was written
  4  another session held a lock for too long; nothing was changed: run it again
  6  load --rejects: some rows were rejected, the others are loaded
  130, 143  ended by Ctrl-C or SIGTERM: what it was writing is there whole or not at all

Examples:
  ${PROGRAM} keys create --name "desk 4" --scope prices:nickel
  ${PROGRAM} load ecb eurofxref-hist.zip
  ${PROGRAM} db migrate --status --json`;

const addServe = command({
  name: 'serve',
  summary: 'run the service',
  description: 'Runs the service until it gets SIGINT or SIGTERM; the same as npm start.',
  options: [],
  help: `
Examples:
  npm start
  PORT=8080 DATABASE_URL=postgres://… ${PROGRAM} serve`,
  async run() {
    // Importing the module starts the service.
    await import('../server.ts');
  },
});

/** Description of an option in the help, marked if the option is required. */
const optionDescription = (option: Option): string => {
  const text = new Help().optionDescription(option);
  return option.mandatory ? `${text} (required)` : text;
};

/** Commands with a common first word. */
interface CommandGroup {
  readonly summary: string;
  readonly description: string;
  /** Loads the module of the commands; returns the functions that add them to the group. */
  readonly load: () => Promise<readonly ((group: Command) => void)[]>;
}

const GROUPS = {
  db: {
    summary: 'migrate, seed, verify, export and import the database, create its accounts',
    description:
      'Migrates the schema, loads seeds, creates accounts, hashes, verifies, exports and imports ' +
      'data.',
    load: async () => (await import('./db/db.ts')).DATABASE_COMMANDS,
  },
  load: {
    summary: 'load a file of prices, exchange rates, calendars or VAT',
    description: 'Loads a file of prices or exchange rates, and reports what was loaded.',
    load: async () => (await import('./load/load-commands.ts')).LOAD_COMMANDS,
  },
  keys: {
    summary: 'make, list, rotate and revoke API keys',
    description: 'Makes, lists, shows, rotates and revokes API keys.',
    load: async () => (await import('./keys/keys.ts')).KEY_COMMANDS,
  },
  webhooks: {
    summary: 'send doorbells about new prices to receivers',
    description: 'Adds, lists, tests, rotates and removes webhooks, and sends their messages.',
    load: async () => (await import('./webhooks/webhooks.ts')).WEBHOOK_COMMANDS,
  },
  token: {
    summary: 'check a bearer token, or sign one for development',
    description: 'Bearer tokens: what the service says to one, and one for trying it out.',
    load: async () => (await import('./token.ts')).TOKEN_COMMANDS,
  },
} satisfies Record<string, CommandGroup>;

/**
 * Builds the command line. Errors are thrown; the process does not exit.
 * @param words arguments of the process: only the modules of groups among them are loaded, so that
 * a command starts sooner. Without arguments, all are loaded.
 */
export async function makeProgram(words?: readonly string[]): Promise<Command> {
  const program = new Command('commodity-prices')
    .description('Commodity Prices Service: commands for operators.')
    .usage('<command> [options]')
    .version(VERSION)
    .showHelpAfterError('(add --help for the commands and their options)')
    .exitOverride()
    .configureHelp({ optionDescription })
    // An error repeats the arguments, and a token or a key may be among them by mistake.
    .configureOutput({ writeErr: (text) => void process.stderr.write(masked(text)) })
    .addHelpText('after', FOOTER);
  const addGroup = async (name: keyof typeof GROUPS): Promise<void> => {
    const { summary, description, load } = GROUPS[name];
    const group = program.command(name).summary(summary).description(description);
    if (words !== undefined && !words.includes(name)) return;
    for (const add of await load()) add(group);
  };
  addServe(program);
  await addGroup('db');
  await addGroup('load');
  addWithdraw(program);
  addLate(program);
  await addGroup('keys');
  await addGroup('webhooks');
  await addGroup('token');
  addOpenapi(program);
  addMcp(program);
  return program;
}
