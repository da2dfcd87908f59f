import { readdirSync, readFileSync } from 'node:fs';

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has exited.
    return '';
  }
};

/** CPU nanoseconds of all threads of a process, by the kernel (Linux). */
function ranNs(pid: number): bigint {
  let sum = 0n;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [ran] = read(`/proc/${pid}/task/${task}/schedstat`).split(' ');
    if (ran) sum += BigInt(ran);
  }
  return sum;
}

/** The children of a process. */
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

/** CPU nanoseconds by process; exited processes are missing. */
function ranByPid(pids: readonly number[]): Map<number, bigint> {
  const ran = new Map<number, bigint>();
  for (const pid of pids) {
    try {
      ran.set(pid, ranNs(pid));
    } catch {
      // The process has exited.
    }
  }
  return ran;
}

/**
 * Starts a count. The returned function gives the CPU milliseconds that the processes have used
 * since. New processes count in full; exited ones count nothing.
 */
export function cpuSince(pids: () => readonly number[]): () => number {
  const before = ranByPid(pids());
  return () => {
    let sum = 0n;
    for (const [pid, ran] of ranByPid(pids())) sum += ran - (before.get(pid) ?? 0n);
    return Number(sum) / 1e6;
  };
}

/** Current and peak memory of a process, in bytes. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  const status = read(`/proc/${pid}/status`);
  const field = (name: string): number =>
    1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  return { now: field('VmRSS'), peak: field('VmHWM') };
}

/** Resets the peak, if the kernel allows it. */
export function resetPeak(pid: number, write: (path: string, text: string) => void): void {
  try {
    write(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Without a reset the peak covers the whole process life: an upper bound.
  }
}
