import { report } from './failure.ts';

class ShutdownError extends Error {}

/** Start and shutdown of the process: collects the steps that a shutdown must run. */
export class Lifecycle {
  readonly #steps: (() => Promise<void>)[] = [];
  isShuttingDown = false;

  /** Adds a step to the shutdown. Steps run in reverse order. */
  onShutdown(step: () => Promise<void>): void {
    this.#steps.push(step);
  }

  /** Aborts the start if a signal has arrived. @throws ShutdownError */
  throwIfShuttingDown(): void {
    if (this.isShuttingDown) throw new ShutdownError('the process was stopped while it started');
  }

  async shutDown(): Promise<void> {
    this.isShuttingDown = true;
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) await step().catch(report);
  }
}
