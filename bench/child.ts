import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A server of the benchmark, in its own process. */
export interface Served {
  readonly address: string;
  readonly pid: number;
  /** Milliseconds from its start to its readiness. */
  readonly startMs: number;
  hasEnded(): boolean;
  stop(): Promise<void>;
}

const START_MAX_MS = 120_000;

/** The address in a line `ready <address>`. */
const addressIn = (text: string): string | null =>
  /^ready (\S+)$/m.exec(text)?.[1]?.replace('0.0.0.0', '127.0.0.1') ?? null;

/**
 * Starts a Node program and waits for its address.
 * @throws with its output if it exits, or prints no address for two minutes
 */
export async function serve(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  nodeFlags: readonly string[] = [],
): Promise<Served> {
  const began = performance.now();
  const child: ChildProcess = spawn(process.execPath, [...nodeFlags, file, ...args], {
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const address = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${file} did not start: ${said}`)),
      START_MAX_MS,
    );
    const onData = (chunk: Buffer): void => {
      said = (said + chunk).slice(-10_000);
      const found = addressIn(said);
      if (found) resolve(found);
      if (found) clearTimeout(timer);
    };
    child.stdout?.on('data', onData);
    child.stderr?.on('data', onData);
    child.once('exit', () => reject(new Error(`${file} ended: ${said}`)));
  });
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const stop = async (): Promise<void> => {
    if (hasEnded()) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 3_000).unref();
    await ended;
  };
  return { address, pid: child.pid ?? 0, startMs: performance.now() - began, hasEnded, stop };
}

/** Runs a command and returns its output. @throws with its errors if it fails */
export async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let errors = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    errors = (errors + chunk).slice(-10_000);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${errors}`);
  return out;
}
