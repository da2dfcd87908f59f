import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type t from 'tap';
import { NODE_FLAGS } from '../../../src/std/program.ts';
import { NO_LIMITS } from '../http/no-limits.ts';
import { makeFolder } from '../run/folders.ts';

const SERVER = fileURLToPath(new URL('../../../src/server.ts', import.meta.url));
const COMMANDS = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));

type Test = Pick<typeof t, 'teardown'>;
type Env = Readonly<Record<string, string>>;

/** A process and its output so far. */
export interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until stdout or stderr holds the text. */
  until(stream: 'stdout' | 'stderr', text: string | RegExp): Promise<string>;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** The outcome of a process. */
export interface ProcessOutcome {
  readonly code: number | NodeJS.Signals;
  readonly stdout: string;
  readonly stderr: string;
}

/** A data folder; the teardown stops its server and removes it. */
export async function dataFolder(test: Test): Promise<string> {
  const folder = await makeFolder();
  test.teardown(folder.remove);
  return join(folder.path, 'data folder é');
}

/**
 * Starts a program in a folder without a `.env` file, with exactly these settings. Its standard
 * error is captured unless it goes to a file descriptor.
 */
function run(
  test: Test,
  args: readonly string[],
  env: Env,
  stderr?: number,
  input?: string | number,
): Running {
  const { TAP: _tap, NODE_OPTIONS: _options, ...inherited } = process.env;
  const child = spawn(process.execPath, [...args], {
    cwd: tmpdir(),
    env: { ...inherited, ...env },
    stdio: [typeof input === 'string' ? 'pipe' : (input ?? 'ignore'), 'pipe', stderr ?? 'pipe'],
  });
  child.stdin?.on('error', () => {}).end(input);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
      child.emit('said');
    });
  }
  let exit: number | NodeJS.Signals | null = null;
  const ended = once(child, 'close').then(([code, signal]) => {
    exit = code ?? signal;
    child.emit('said');
    return code ?? signal;
  });
  test.teardown(() => child.kill('SIGKILL'));
  const until: Running['until'] = async (stream, text) => {
    const holds = (): boolean =>
      typeof text === 'string' ? output[stream].includes(text) : text.test(output[stream]);
    while (!holds()) {
      if (exit !== null)
        throw new Error(`the program ended (${exit}) first:\n${output.stdout}${output.stderr}`);
      await once(child, 'said');
    }
    return output[stream];
  };
  return { child, stdout: () => output.stdout, stderr: () => output.stderr, until, ended };
}

/** Starts the service, with further arguments for Node. */
export const startService = (
  test: Test,
  env: Env,
  node: readonly string[] = [],
  stderr?: number,
): Running =>
  run(test, [...NODE_FLAGS, ...node, SERVER], { PORT: '0', ...NO_LIMITS, ...env }, stderr);

/** Starts one command. */
export const startCommand = (test: Test, env: Env, ...args: string[]): Running =>
  run(test, [COMMANDS, ...args], env);

/** Runs one command to its end. */
export async function prices(test: Test, env: Env, ...args: string[]): Promise<ProcessOutcome> {
  const running = startCommand(test, env, ...args);
  const code = await running.ended;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
}

/** Runs one command to its end. Its standard input is a text by a pipe, or an open file. */
export async function pricesWith(
  test: Test,
  input: string | number,
  env: Env,
  ...args: string[]
): Promise<ProcessOutcome> {
  const running = run(test, [COMMANDS, ...args], env, undefined, input);
  const code = await running.ended;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
}

/** Starts a module given as text. */
export const startScript = (test: Test, text: string, stderr?: number): Running =>
  run(test, ['--input-type=module', '--eval', text], {}, stderr);

/** Runs a module given as text to its end. */
export async function runScript(
  test: Test,
  text: string,
  stderr?: number,
): Promise<ProcessOutcome> {
  const running = startScript(test, text, stderr);
  const code = await running.ended;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
}
