import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { agentOf, type HttpRequest, send, type Target } from '../process/load.ts';
import { LENGTH } from '../run/length.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A share of the processor that several processes have together. */
export interface Quota {
  /** The mechanism; part of the figures where it is not a quota. */
  readonly kind: string;
  /** Confines processes, and all that they start from now on. */
  add(...pids: readonly number[]): void;
  /** Sets the share, in cores; null for no bound. */
  cores(share: number | null): void;
}

const PERIOD_US = 100_000;

/** The paths and the quota format of a cgroup version. */
interface Version {
  readonly kind: string;
  readonly root: string;
  readonly file: string;
  readonly text: (quotaUs: number | null) => string;
}

const VERSIONS: readonly Version[] = [
  {
    kind: 'cgroup v1',
    root: '/sys/fs/cgroup/cpu',
    file: 'cpu.cfs_quota_us',
    text: (quotaUs) => String(quotaUs ?? -1),
  },
  {
    kind: 'cgroup v2',
    root: '/sys/fs/cgroup',
    file: 'cpu.max',
    text: (quotaUs) => `${quotaUs ?? 'max'} ${PERIOD_US}`,
  },
];

let groups = 0;

/** Moves a process to a group. */
function move(folder: string, pid: number): void {
  try {
    writeFileSync(`${folder}/cgroup.procs`, String(pid));
  } catch (error) {
    // The PostgreSQL process has exited.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function groupOf({ kind, root, file, text }: Version): (Quota & { remove(): void }) | null {
  const folder = `${root}/commodity-prices-faults-${process.pid}-${groups++}`;
  try {
    mkdirSync(folder);
    if (!existsSync(`${folder}/${file}`)) writeFileSync(`${root}/cgroup.subtree_control`, '+cpu');
    writeFileSync(`${folder}/${file}`, text(null));
  } catch {
    if (existsSync(folder)) rmdirSync(folder);
    return null;
  }
  return {
    kind,
    add: (...pids) => {
      for (const pid of pids) move(folder, pid);
    },
    cores: (share) =>
      writeFileSync(
        `${folder}/${file}`,
        text(share === null ? null : Math.round(share * PERIOD_US)),
      ),
    remove: () => {
      const left = readFileSync(`${folder}/cgroup.procs`, 'utf8').split('\n');
      for (const pid of left.filter((each) => each !== '')) move(root, Number(pid));
      rmdirSync(folder);
    },
  };
}

/** Fallback without cgroups: pins to one core; a share of a core is one core then. */
const AFFINITY: Quota = {
  kind: 'one core by affinity, no quota',
  add: (...pids) => {
    for (const pid of pids) execFileSync('taskset', ['-acp', '0', String(pid)]);
  },
  cores: () => {},
};

/** Makes a process group with a CPU quota; the teardown removes the group, not its processes. */
export function quotaOf(test: Test): Quota {
  for (const version of VERSIONS) {
    const group = groupOf(version);
    if (group === null) continue;
    test.teardown(async () => {
      // The kernel counts a process for a short time after its exit.
      for (let left = 20; left > 0; left -= 1) {
        try {
          return group.remove();
        } catch {
          await pause(50);
        }
      }
    });
    return group;
  }
  return AFFINITY;
}

/** CPU shares of the fault runs; short runs have no quota. */
export const SHARES: readonly (readonly [name: string, cores: number])[] =
  LENGTH === 'short'
    ? [['', 0]]
    : [
        ['at one core', 1],
        ['at half a core', 0.5],
      ];

/** A share beside a busy loop: other work on the machine must not change the backlog that fits. */
const BESIDE_A_LOOP = ['at half a core beside a loop', 0.5] as const;

/** The shares, and in full runs one beside a loop that takes a third of the machine. */
export const SHARES_AND_LOOP: typeof SHARES =
  LENGTH === 'short' ? SHARES : [...SHARES, BESIDE_A_LOOP];

/**
 * Runs work, for the share beside a loop together with a loop that takes a third of the machine.
 */
export async function besideLoop<T>(
  test: Test,
  share: (typeof SHARES)[number],
  work: () => Promise<T>,
): Promise<T> {
  if (share !== BESIDE_A_LOOP) return work();
  const loops = cpus().map(() => spawn(process.execPath, ['-e', 'for (;;);']));
  test.teardown(() => loops.map((loop) => loop.kill('SIGKILL')));
  const quota = quotaOf(test);
  quota.add(...loops.map(({ pid = 0 }) => pid));
  quota.cores(cpus().length / 3);
  try {
    return await work();
  } finally {
    for (const loop of loops) loop.kill('SIGKILL');
  }
}

/** The load as a share of the capacity. */
const PART = 0.6;

/** The name of a figure, with its CPU share if there are several. */
export const named = (figure: string, [share]: (typeof SHARES)[number]): string =>
  `${figure} ${share}`.trim();

/** Requests per second of a load, and the figures that explain the rate. */
export interface LoadRate {
  readonly perSecond: number;
  readonly figures: Readonly<Record<string, string>>;
}

/** Measures the requests per second of a service under 16 clients in a closed loop. */
async function capacityOf(
  test: Test,
  target: Target,
  asks: readonly HttpRequest[],
): Promise<number> {
  const agent = agentOf(test, 16);
  let [good, next, isCounted, isOver] = [0, 0, false, false];
  const client = async (): Promise<void> => {
    while (!isOver) {
      const { status } = await send(agent, target, asks[next++ % asks.length] as HttpRequest);
      if (status === 200 && isCounted && !isOver) good += 1;
    }
  };
  const clients = Array.from({ length: 16 }, client);
  await pause(1_500);
  isCounted = true;
  const begun = performance.now();
  await pause(4_000);
  isOver = true;
  const seconds = (performance.now() - begun) / 1_000;
  await Promise.all(clients);
  agent.destroy();
  return good / seconds;
}

/**
 * Limits the processes of a quota to a share, and returns 60 % of the capacity measured there.
 * Short runs measure nothing and return the given rate.
 */
export async function rateAt(
  test: Test,
  quota: Quota,
  share: (typeof SHARES)[number],
  target: Target,
  asks: readonly HttpRequest[],
  short: number,
): Promise<LoadRate> {
  const [, cores] = share;
  if (cores === 0) return { perSecond: short, figures: {} };
  quota.cores(cores);
  const capacity = await capacityOf(test, target, asks);
  const perSecond = Math.max(5, Math.floor(capacity * PART));
  const rate = `${perSecond} a second, 60 % of ${Math.round(capacity)}`;
  const kind = quota === AFFINITY ? ` (${quota.kind})` : '';
  return { perSecond, figures: { [named('rate', share)]: `${rate}${kind}` } };
}
