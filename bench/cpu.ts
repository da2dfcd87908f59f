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

/** Nanoseconds of each of some processes; one that has ended is none of them. */
function ranByPid(pids: readonly number[]): Map<number, bigint> {
  const ran = new Map<number, bigint>();
  for (const pid of pids) {
    try {
      ran.set(pid, ranNs(pid));
    } catch {
      // It ended.
    }
  }
  return ran;
}

/**
 * Begins to count; what it returns tells the milliseconds of CPU that the processes used since. One
 * that came since counts whole, and one that has ended counts nothing: its count went with it.
 */
export function cpuSince(pids: () => readonly number[]): () => number {
  const before = ranByPid(pids());
  return () => {
    let sum = 0n;
    for (const [pid, ran] of ranByPid(pids())) sum += ran - (before.get(pid) ?? 0n);
    return Number(sum) / 1e6;
  };
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
