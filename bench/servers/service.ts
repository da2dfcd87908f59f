/** The service itself; prints its address once it answers. */
import { setTimeout as pause } from 'node:timers/promises';
import '../../src/server.ts';

const address = `http://127.0.0.1:${process.env['PORT']}`;
for (;;) {
  const answer = await fetch(`${address}/live`).catch(() => null);
  if (answer?.ok) break;
  await pause(5);
}
console.log(`ready ${address}`);
