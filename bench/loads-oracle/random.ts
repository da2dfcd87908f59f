import { uniformOf } from '../../seeds/random.ts';

/** Reproducible random choices: the same text gives the same choices on every machine. */
export class Random {
  private readonly next: () => number;

  constructor(text: string) {
    this.next = uniformOf(text);
  }

  /** An integer from `least` to `most`. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(all: readonly T[]): T {
    return all[this.int(0, all.length - 1)] as T;
  }

  /** A random subset, in the given order. */
  some<T>(all: readonly T[], least: number, most: number): T[] {
    const count = Math.min(all.length, this.int(least, most));
    const left = all.map((_, index) => index);
    const taken = Array.from(
      { length: count },
      () => left.splice(this.int(0, left.length - 1), 1)[0] as number,
    );
    return taken.sort((a, b) => a - b).map((index) => all[index] as T);
  }

  /** One of several, with weights. */
  weighted<T>(all: readonly (readonly [weight: number, value: T])[]): T {
    const total = all.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.next() * total;
    for (const [weight, value] of all) {
      left -= weight;
      if (left < 0) return value;
    }
    return (all[0] as readonly [number, T])[1];
  }
}
