// A process that uses the embedded database until its input ends: `node embedded-user.ts FOLDER`.
import { once } from 'node:events';
import { openEmbedded } from '../../../src/db/embedded/embedded.ts';

const embedded = await openEmbedded(process.argv[2] ?? '');
process.stdout.write(`${JSON.stringify({ url: embedded.url, started: embedded.started })}\n`);
process.stdin.resume();
await once(process.stdin, 'end');
await embedded.release();
