import { spawn } from 'node:child_process';
import type t from 'tap';
import type { Cluster } from '../../support/database/cluster.ts';

type Test = Pick<typeof t, 'teardown'>;

/** Calls that bring bytes to a disk for good. */
const SYNCS = 'fsync,fdatasync';

/** Makes what processes bring to the disk fail; null where that may not be done. */
function traced(test: Test, pids: readonly number[]): Promise<'EIO' | null> {
  const args = ['-f', '-o', '/dev/null', '-e', `trace=${SYNCS}`, '-e', `inject=${SYNCS}:error=EIO`];
  const tracer = spawn('strace', [...args, ...pids.flatMap((pid) => ['-p', String(pid)])], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  test.teardown(() => tracer.kill());
  return new Promise((resolve) => {
    let said = '';
    const heard = (text: Buffer): void => {
      said += text;
      if (said.split(' attached').length > pids.length) resolve('EIO');
    };
    tracer.stderr.on('data', heard);
    tracer.once('error', () => resolve(null));
    tracer.once('close', () => resolve(null));
  });
}

/**
 * The disk under a server fails from now on, for as long as the server runs: no sync of it
 * succeeds. PostgreSQL ends itself at the next one, since nothing tells what of its writes was
 * kept; where no call can be made to fail, it is ended.
 */
export async function failDisk(test: Test, cluster: Cluster): Promise<'EIO' | 'SIGKILL'> {
  const how = await traced(test, await cluster.processes());
  if (how === null) await cluster.kill();
  return how ?? 'SIGKILL';
}
