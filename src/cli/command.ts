import { type Command, Option } from 'commander';
import { nearest } from '../catalog/nearest.ts';
import { UsageError } from '../process/failure.ts';
import { printJson } from './output.ts';

/** The result of a command. */
export interface Answer {
  /** For a program: --json prints it. */
  readonly data: unknown;
  /** Prints the same for a person. */
  readonly print: () => void;
  /** Other than 0 when the work was done and did not come out well. */
  readonly exitCode?: number | undefined;
}

interface Definition {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  readonly description: string;
  /** Each with what it is. */
  readonly args?: readonly (readonly [flags: string, description: string])[];
  readonly options: readonly Option[];
  /** Notes and examples, an empty line below the options. */
  readonly help: string;
  /**
   * Gets the arguments and then the options, as commander parsed them. A wrong use that commander
   * cannot see is a UsageError. A command that prints while it runs returns nothing.
   */
  readonly run: (...given: never[]) => Promise<Answer | undefined> | Promise<void>;
}

/** An option with what it is for, as commander knows it. */
export const option = (flags: string, description: string): Option =>
  new Option(flags, description);

/** An option that the command does not do without. */
export const required = (flags: string, description: string): Option =>
  option(flags, description).makeOptionMandatory();

/** An option that may be repeated; its value is a list. */
export const repeatable = (flags: string, description: string): Option =>
  option(flags, description)
    .argParser((value: string, before: readonly string[]) => [...before, value])
    .default([]);

/** `--json`, which every command with data has. */
export const json = (description = 'print data for a program'): Option =>
  option('--json', description);

/** Prints an answer for a program or for a person. */
export function printAnswer({ data, print }: Answer, asJson: boolean): void {
  if (asJson) printJson(data);
  else print();
}

/** Makes the function that adds a command to its parent: its help, its answer, its exit code. */
export function command(definition: Definition): (parent: Command) => void {
  const { name, summary, description, args = [], options, help, run } = definition;
  return (parent) => {
    const made = parent.command(name).summary(summary).description(description);
    for (const each of args) made.argument(...each);
    for (const each of options) made.addOption(each);
    made.addHelpText('after', help);
    made.action(async (...given: unknown[]) => {
      // Commander adds the command itself to the arguments and the options.
      const answer = await run(...(given.slice(0, -1) as never[]));
      if (answer === undefined) return;
      printAnswer(answer, made.opts()['json'] === true);
      if (answer.exitCode) process.exitCode = answer.exitCode;
    });
  };
}

/** Refuses a name that is not known, with the one that was probably meant. */
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
