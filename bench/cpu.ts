import { readdirSync, readFileSync } from 'node:fs';

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It ended meanwhile.
    return '';
  }
};

/** Nanoseconds that all threads of a process have run, by the kernel's own count (Linux). */
function ranNs(pid: number): bigint {
  let sum = 0n;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [ran] = read(`/proc/${pid}/task/${task}/schedstat`).split(' ');
    if (ran) sum += BigInt(ran);
  }
  return sum;
}

/** The processes whose parent is this one. */
function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const afterName = read(`/proc/${name}/stat`).split(') ').at(-1) ?? '';
      return afterName.split(' ')[1] === String(pid);
    })
    .map(Number);
}

/** Process ids of a PostgreSQL server and all its backends. */
export const clusterPids = (postmaster: number): number[] => [
  postmaster,
  ...childrenOf(postmaster),
];

/** Milliseconds of CPU that some processes have used; one that has ended counts no more. */
export function cpuMs(pids: readonly number[]): number {
  let sum = 0n;
  for (const pid of pids) {
    try {
      sum += ranNs(pid);
    } catch {
      // It ended.
    }
  }
  return Number(sum) / 1e6;
}

/** Bytes of memory that a process holds now, and held at most. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  const status = read(`/proc/${pid}/status`);
  const field = (name: string): number =>
    1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  return { now: field('VmRSS'), peak: field('VmHWM') };
}

/** Lets the peak begin anew, where the kernel allows it. */
export function forgetPeak(pid: number, write: (path: string, text: string) => void): void {
  try {
    write(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Then the peak is that of the whole life, which is stated too high, never too low.
  }
}
