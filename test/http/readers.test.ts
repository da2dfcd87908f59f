import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { RequestContext } from '../../src/http/context.ts';
import { Readers } from '../../src/http/hooks/readers.ts';
import { RequestWork } from '../../src/http/work.ts';
import { Gate } from '../../src/limits/gate.ts';
import { HeldBytes } from '../../src/std/held-bytes.ts';

const STALL_MS = 400;
const WRITES = 60;

/** Counts the writes of an answer, each taken after a given time, until its reader is closed. */
async function writesTo(bytes: number, readMs: number): Promise<number> {
  const readers = new Readers(new Gate({ runningMax: 1, waitingMax: 4, waitMs: 500 }), STALL_MS);
  const socket = new Socket();
  const context = new RequestContext(
    new RequestWork(60_000),
    new HeldBytes(1),
    () => Promise.reject(new Error('needs no revision')),
    0,
  );
  const afterWrite = readers.follow({ context, raw: new IncomingMessage(socket) });
  let writes = 0;
  while (!socket.destroyed && writes < WRITES) {
    await afterWrite(bytes, pause(readMs));
    writes += 1;
  }
  return writes;
}

t.test('a reader below 16 KiB/s is disconnected, though each of its reads is timely', async (t) => {
  // 100 bytes each 20 ms are 5 kB/s: it falls behind by 14 ms at each write.
  t.ok((await writesTo(100, 20)) < WRITES);
});

t.test('a reader above 16 KiB/s is served to the end', async (t) => {
  t.equal(await writesTo(65_536, 20), WRITES);
});
