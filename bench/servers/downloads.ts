/**
 * Two clients that download W4 again and again, in a process of their own: what they read must not
 * delay the clients that are measured.
 *
 *     node bench/servers/downloads.ts ADDRESS KEY
 */
import { driverOf } from '../drive.ts';
import { askService, WORKLOADS } from '../workloads.ts';

const [address = '', key = ''] = process.argv.slice(2);
const workload = WORKLOADS.find(({ name }) => name === 'W4');
if (!workload) throw new Error('there is no workload W4');
const ask = askService(workload, key);
const driver = driverOf(address, 2);

async function download(): Promise<never> {
  for (;;) await driver.send(ask);
}

const downloads = [download(), download()];
console.log(`ready ${address}`);
await Promise.all(downloads);
