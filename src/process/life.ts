import { report } from './failure.ts';

class Stopped extends Error {}

/** What a process has begun, and has to undo at its end. */
export class Life {
  readonly #undo: (() => Promise<void>)[] = [];
  /** True if the end was asked for. */
  isEnding = false;
  /** True if a signal asked for it: others may have to notice before it comes. */
  isBySignal = false;

  /** Has this done at the end; what was begun last is undone first. */
  atEnd(step: () => Promise<void>): void {
    this.#undo.push(step);
  }

  /** Leaves the start when a signal came meanwhile; what was begun is undone. */
  checkpoint(): void {
    if (this.isEnding) throw new Stopped('stopped while starting');
  }

  async end(): Promise<void> {
    this.isEnding = true;
    for (let step = this.#undo.pop(); step; step = this.#undo.pop()) await step().catch(report);
  }
}
