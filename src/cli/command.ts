import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import { MARKETS } from '../catalog/markets.ts';
import { nearest } from '../catalog/nearest.ts';
import { readCommandConfig } from '../process/environment.ts';
import { UsageError } from '../std/base-errors.ts';
import { printLines } from './output.ts';

/** The result of a command. */
export interface CommandResult {
  /** Output of --json. */
  readonly data: unknown;
  /** Prints the result as text. */
  readonly print: () => void;
  /** Exit code if the command finished with a negative result. */
  readonly exitCode?: number | undefined;
}

interface Definition {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly description: string;
  /** Arguments with their descriptions. */
  readonly args?: readonly (readonly [flags: string, description: string])[];
  readonly options: readonly Option[];
  /** Notes and examples, printed after the options. */
  readonly help: string;
  /**
   * Receives the arguments and then the options, as parsed by commander. Throws UsageError for an
   * invalid use that commander cannot detect. A command that prints while it runs returns nothing.
   */
  readonly run: (...given: never[]) => Promise<CommandResult | undefined> | Promise<void>;
}

/** An option with its description. */
export const option = (flags: string, description: string): Option =>
  new Option(flags, description);

/** A required option. */
export const required = (flags: string, description: string): Option =>
  option(flags, description).makeOptionMandatory();

/** An option that may be repeated; its value is a list. */
export const repeatable = (flags: string, description: string): Option =>
  option(flags, description)
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([]);

/** The option `--json` of every command with data. */
export const json = (description = 'print data for a program'): Option =>
  option('--json', description);

/** Prints an answer as JSON or as text. */
export function printAnswer({ data, print }: CommandResult, asJson: boolean): void {
  if (asJson) printLines(JSON.stringify(data, null, 2));
  else print();
}

/** Returns a function that adds the command to its parent. */
export function command(definition: Definition): (parent: Command) => void {
  const { name, summary, description, args = [], options, help, run } = definition;
  return (parent) => {
    const made = parent.command(name).summary(summary).description(description);
    for (const each of args) made.argument(...each);
    for (const each of options) made.addOption(each);
    made.addHelpText('after', help);
    made.action(async (...given: unknown[]) => {
      // Commander appends the command itself to the arguments and options.
      const answer = await run(...(given.slice(0, -1) as never[]));
      if (answer === undefined) return;
      printAnswer(answer, made.opts()['json'] === true);
      if (answer.exitCode) process.exitCode = answer.exitCode;
    });
  };
}

/** Parses a whole number of the command line. @throws UsageError */
export function wholeOf(name: string, text: string, least = 1, most = 999_999_999): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  const shown = text.slice(0, 64);
  throw new UsageError(`${name}: "${shown}" is not a whole number from ${least} to ${most}`);
}

/** Rejects an unknown name and suggests a similar one. @throws UsageError */
export function checkKnown(
  flag: string,
  kind: string,
  given: readonly string[],
  known: readonly string[],
  otherwise: string,
): void {
  const unknown = given.find((each) => !known.includes(each));
  if (unknown === undefined) return;
  const [near] = nearest(unknown, known, 1);
  const hint = near === undefined ? otherwise : `did you mean ${near}?`;
  throw new UsageError(`${flag} ${unknown}: there is no such ${kind}; ${hint}`);
}

/** Rejects an unknown market of `--market`. @throws UsageError */
export function checkMarkets(given: readonly string[]): void {
  const slugs = MARKETS.map(({ slug }) => slug);
  checkKnown('--market', 'market', given, slugs, `the markets are ${slugs.join(', ')}`);
}

/** The option `--by` of every command that the ledger or the key audit records. */
export const by = (): Option =>
  option('--by <name>', 'who does this; by default PRICES_ACTOR, else the system account');

/** The account of this process; behind sudo the one that called it. */
function systemAccount(): string {
  const { SUDO_USER } = process.env;
  if (process.getuid?.() === 0 && SUDO_USER) return SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    // Some containers run as a uid without a user name.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Longest name of `--by` and PRICES_ACTOR, in characters. */
const ACTOR_MAX = 100;

/**
 * The person or job that runs a command, for the ledger and the key audit. The database records its
 * own account beside it.
 * @throws UsageError for a blank or unprintable name
 */
export function actorOf({ by: named }: { readonly by?: string | undefined }): string {
  const name = (named ?? readCommandConfig().PRICES_ACTOR ?? systemAccount()).trim();
  if (name !== '' && name.length <= ACTOR_MAX && !/\p{C}/u.test(name)) return name;
  throw new UsageError(
    `${named === undefined ? 'PRICES_ACTOR' : '--by'} has to be a name of at most ${ACTOR_MAX} ` +
      'printable characters',
  );
}

/** The actor with the account of the database: `anna (prices_loader)`. */
export const actorText = ({
  actor,
  account,
}: {
  readonly actor: string;
  readonly account: string | null;
}): string => (account === null || account === actor ? actor : `${actor} (${account})`);
