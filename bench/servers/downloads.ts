/**
 * Two clients that download W4 repeatedly, in their own process, so that their reading does not
 * delay the measured clients. Each download begins at another day: none is kept.
 *
 *     node bench/servers/downloads.ts ADDRESS KEY
 */
import { DAYS, LAST_DAY } from '../dataset.ts';
import { driverOf } from '../http-client.ts';
import { serviceRequest, WORKLOADS } from '../workloads.ts';

const [address = '', key = ''] = process.argv.slice(2);
const workload = WORKLOADS.find(({ name }) => name === 'W4');
if (!workload) throw new Error('there is no workload W4');
const ranges = DAYS.slice(0, 100).map((from) => ({ from, to: LAST_DAY }));
const ask = serviceRequest({ ...workload, ranges }, key);
const driver = driverOf(address, 2);

async function download(): Promise<never> {
  for (;;) await driver.send(ask);
}

const downloads = [download(), download()];
console.log(`ready ${address}`);
await Promise.all(downloads);
