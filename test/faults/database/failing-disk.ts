import { spawn } from 'node:child_process';
import type t from 'tap';
import type { Cluster } from '../../support/database/cluster.ts';

type Test = Pick<typeof t, 'teardown'>;

/** System calls that flush writes. */
const SYNCS = 'fsync,fdatasync';

/** Makes the flushes of processes fail by strace; null if that is not possible. */
function traced(test: Test, pids: readonly number[]): Promise<'EIO' | null> {
  const args = ['-f', '-o', '/dev/null', '-e', `trace=${SYNCS}`, '-e', `inject=${SYNCS}:error=EIO`];
  const tracer = spawn('strace', [...args, ...pids.flatMap((pid) => ['-p', String(pid)])], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  test.teardown(() => tracer.kill());
  return new Promise((resolve) => {
    let said = '';
    const onOutput = (text: Buffer): void => {
      said += text;
      if (said.split(' attached').length > pids.length) resolve('EIO');
    };
    tracer.stderr.on('data', onOutput);
    tracer.once('error', () => resolve(null));
    tracer.once('close', () => resolve(null));
  });
}

/**
 * Makes every flush of a server fail until it exits. PostgreSQL panics at the next one, because it
 * cannot know which writes were kept. Without strace the server is killed instead.
 */
export async function failDisk(test: Test, cluster: Cluster): Promise<'EIO' | 'SIGKILL'> {
  const how = await traced(test, await cluster.processes());
  if (how === null) await cluster.kill();
  return how ?? 'SIGKILL';
}
