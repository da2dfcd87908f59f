import type { ServiceProcess } from '../http/service-process.ts';
import { until } from '../http/sockets.ts';

const importing = (file: string): string => `--import=${new URL(file, import.meta.url).href}`;

/** Settings that preload the heap sampler. */
export const HEAP_SAMPLER = { NODE_OPTIONS: importing('./heap-sampler.ts') };

/** The same with a fixed compilation tier, so that the heap settles early. */
export const HEAP_SAMPLER_STABLE_CODE = {
  NODE_OPTIONS: `${HEAP_SAMPLER.NODE_OPTIONS} ${importing('../run/compiled-once.ts')}`,
};

/** The heap of a service after a garbage collection, in MB. */
export interface Heap {
  readonly whole: number;
  readonly data: number;
  readonly code: number;
}

/** Samples the heap of a service with `HEAP_SAMPLER`. */
export async function heapOf({ running }: ServiceProcess): Promise<Heap> {
  const before = running.stderr().length;
  running.child.kill('SIGUSR2');
  const reported = (): RegExpExecArray | null =>
    /^heap (\d+) code (\d+)$/m.exec(running.stderr().slice(before));
  await until('the service prints its heap', () => reported() !== null);
  const [, data, code] = reported() ?? [];
  const [dataMb, codeMb] = [Number(data) / 2 ** 20, Number(code) / 2 ** 20];
  return { whole: dataMb + codeMb, data: dataMb, code: codeMb };
}
