import type { Served } from '../http/service-process.ts';
import { until } from '../http/sockets.ts';

const importing = (file: string): string => `--import=${new URL(file, import.meta.url).href}`;

/** Settings of a service whose heap is asked for. */
export const TELLS_HEAP = { NODE_OPTIONS: importing('./heap-sampler.ts') };

/** The same of one whose heap holds what it does soon: nothing is compiled again and again. */
export const TELLS_HEAP_SOON = {
  NODE_OPTIONS: `${TELLS_HEAP.NODE_OPTIONS} ${importing('../run/compiled-once.ts')}`,
};

/** What is on the heap of a service after a collection, in MB. */
export interface Heap {
  readonly whole: number;
  readonly data: number;
  readonly code: number;
}

/** Collects the garbage of a service that tells its heap. */
export async function heapOf({ running }: Served): Promise<Heap> {
  const before = running.stderr().length;
  running.child.kill('SIGUSR2');
  const told = (): RegExpExecArray | null =>
    /^heap (\d+) code (\d+)$/m.exec(running.stderr().slice(before));
  await until('it tells its heap', () => told() !== null);
  const [, data, code] = told() ?? [];
  const [dataMb, codeMb] = [Number(data) / 2 ** 20, Number(code) / 2 ** 20];
  return { whole: dataMb + codeMb, data: dataMb, code: codeMb };
}
