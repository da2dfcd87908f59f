import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CommandOutcome, Task, TaskAnswer } from './runner.ts';

const RUNNER = fileURLToPath(new URL('runner.ts', import.meta.url));

/** Time without output after which a command counts as hanging. */
const COMMAND_MAX_MS = 120_000;

/** Settings that must be equal on both sides and must not reach another database. */
const ENVIRONMENT = { DATABASE_URL: '', LOG_LEVEL: 'info', LOAD_JUMP_FACTOR: '', DATA_DIR: '' };

/** A task before `Checkout` assigns its id. */
type TaskWithoutId = Task extends infer T ? (T extends Task ? Omit<T, 'id'> : never) : never;

/** A checkout of the project, with one process that runs its commands in sequence. */
export class Checkout {
  readonly folder: string;
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, (answer: TaskAnswer) => void>();
  private last = 0;
  private said = '';

  constructor(folder: string) {
    this.folder = folder;
    const own = join(folder, 'node_modules', '.bin', 'node');
    this.child = spawn(existsSync(own) ? own : process.execPath, [RUNNER, folder], {
      env: { ...process.env, ...ENVIRONMENT },
      // Its own process group: a signal to this process first finishes the current sequence.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.child.stderr?.on('data', (chunk) => {
      this.said = (this.said + chunk).slice(-4_000);
    });
    this.child.on('message', (answer: TaskAnswer) => this.waiting.get(answer.id)?.(answer));
    this.child.on('exit', () => {
      const error = `the process of ${folder} ended: ${this.said}`;
      for (const [id, resolve] of this.waiting) resolve({ id, error });
    });
  }

  /** Runs a command of `prices` in a folder, on a database. */
  async run(url: string, folder: string, words: readonly string[]): Promise<CommandOutcome> {
    const { outcome } = await this.ask({ kind: 'command', url, folder, words });
    if (!outcome) throw new Error(`${this.folder}: no outcome`);
    return outcome;
  }

  /** All changes of the feed of a database, as JSON texts. */
  async feed(url: string): Promise<readonly string[]> {
    return (await this.ask({ kind: 'feed', url })).changes ?? [];
  }

  stop(): void {
    if (this.child.connected) this.child.disconnect();
  }

  private async ask(work: TaskWithoutId): Promise<TaskAnswer> {
    this.last += 1;
    const id = this.last;
    const { promise, resolve } = Promise.withResolvers<TaskAnswer>();
    this.waiting.set(id, resolve);
    const timer = setTimeout(
      () => resolve({ id, error: `no answer for ${COMMAND_MAX_MS} ms` }),
      COMMAND_MAX_MS,
    );
    if (!this.child.connected) resolve({ id, error: `the process has ended: ${this.said}` });
    else this.child.send({ ...work, id });
    const answer = await promise;
    clearTimeout(timer);
    this.waiting.delete(id);
    if (answer.error !== undefined) throw new Error(`${this.folder}: ${answer.error}`);
    return answer;
  }
}
