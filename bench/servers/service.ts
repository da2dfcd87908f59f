/**
 * The service itself; prints its address once it answers. A first SIGUSR2 begins to observe the
 * event loop, a second writes its longest pause in milliseconds to `pauseFile`.
 */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import '../../src/server.ts';
import { pauseFile } from '../loop-pause.ts';

/** Milliseconds between two observations, which each of them contains. */
const RESOLUTION = 1;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION });

process.on('SIGUSR2', () => {
  // True if it was observed until now.
  if (delays.disable()) {
    writeFileSync(pauseFile(process.pid), String(delays.max / 1e6 - RESOLUTION));
    return;
  }
  delays.reset();
  delays.enable();
});

const address = `http://127.0.0.1:${process.env['PORT']}`;
for (;;) {
  const answer = await fetch(`${address}/live`).catch(() => null);
  if (answer?.ok) break;
  await pause(5);
}
console.log(`ready ${address}`);
