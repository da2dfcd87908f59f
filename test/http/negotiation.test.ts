import { randomBytes } from 'node:crypto';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import t from 'tap';
import { compressed, compressedBatches } from '../../src/http/reply/compress.ts';
import { CODINGS, type Coding, preferredCoding } from '../../src/std/negotiation.ts';
import { until } from '../support/http/sockets.ts';

/** Accept-Encoding headers, the chosen coding, and whether identity is acceptable. */
const WANTED: Readonly<Record<string, string>> = {
  '': 'plain',
  gzip: 'gzip or plain',
  'gzip, deflate': 'gzip or plain',
  'gzip, deflate, br': 'br or plain',
  'gzip, deflate, br, zstd': 'zstd or plain',
  'gzip;q=0.9, br': 'br or plain',
  'GZip;Q=0.5': 'gzip or plain',
  'x-gzip': 'gzip or plain',
  'gzip;q=1.0, br;q=0.9, zstd;q=0.1': 'gzip or plain',
  'gzip;q=0.001': 'gzip or plain',
  'br;q=0, gzip': 'gzip or plain',
  deflate: 'plain',
  compress: 'plain',
  identity: 'plain',
  '*': 'gzip or plain',
  '*;q=0.5, br;q=0.1': 'gzip or plain',
  'gzip;q=0, *': 'plain',
  'gzip, identity;q=0': 'gzip',
  'gzip, *;q=0': 'gzip',
  'zstd;q=0.2, br;q=0.3, *;q=0': 'br',
  'gzip;q=0.5, identity': 'plain',
  'gzip, identity': 'gzip or plain',
  'identity;q=0.5, *;q=0': 'plain',
  'identity;q=0': 'nothing',
  '*;q=0': 'nothing',
  'identity;q=0, deflate': 'nothing',
  'gzip;q=0, *;q=0': 'nothing',
  'gzip;q=x': 'gzip or plain',
  ',,,': 'plain',
  'br;q=1.2.3': 'plain',
};

const shown = (accept: string | undefined): string => {
  const wanted = preferredCoding(accept);
  if (wanted === null) return 'nothing';
  if (wanted.coding === null) return 'plain';
  return wanted.acceptsIdentity ? `${wanted.coding} or plain` : wanted.coding;
};

t.test('the coding is the one that the client wants most, then the best bargain', async (t) => {
  for (const [accept, wanted] of Object.entries(WANTED)) t.equal(shown(accept), wanted, accept);
  t.equal(shown(undefined), 'plain');
});

const DECODE: Readonly<Record<Coding, (bytes: Buffer) => Buffer>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

const BATCH_BYTES = 65_536;

/** Endless incompressible batches with a count. */
class Endless {
  made = 0;
  isOver = false;

  async *batches(): AsyncGenerator<readonly Buffer[]> {
    try {
      for (;;) {
        this.made += BATCH_BYTES;
        yield [randomBytes(BATCH_BYTES / 2), randomBytes(BATCH_BYTES / 2)];
      }
    } finally {
      this.isOver = true;
    }
  }
}

for (const coding of CODINGS) {
  t.test(`${coding}: what comes out is what went in`, async (t) => {
    const batches = Array.from({ length: 40 }, (_, index) => [
      Buffer.from('"mid":'),
      randomBytes(index * 500),
      Buffer.from('x'.repeat(index * 900)),
    ]);
    const plain = Buffer.concat(batches.flat());
    const streamed: Buffer[] = [];
    for await (const batch of compressedBatches(batches, coding)) streamed.push(...batch);
    t.ok(DECODE[coding](Buffer.concat(streamed)).equals(plain));
    t.ok(DECODE[coding](await compressed(plain, coding)).equals(plain));
    const none = [];
    for await (const batch of compressedBatches([], coding)) none.push(...batch);
    t.equal(DECODE[coding](Buffer.concat(none)).length, 0, 'also of nothing');
  });

  t.test(
    `${coding}: a reader who is slow holds up the making, one who leaves ends it`,
    async (t) => {
      const source = new Endless();
      let taken = 0;
      for await (const batch of compressedBatches(source.batches(), coding)) {
        taken += Buffer.concat([...batch]).length;
        t.ok(source.made < taken + 16 * BATCH_BYTES, `${source.made} made, ${taken} taken`);
        if (taken > 40 * BATCH_BYTES) break;
      }
      await until('the making ends', () => source.isOver);
    },
  );

  t.test(`${coding}: what fails midway fails for the reader`, async (t) => {
    async function* failing() {
      yield [randomBytes(200_000)];
      throw new Error('the database went');
    }
    const reading = async () => {
      for await (const batch of compressedBatches(failing(), coding)) t.ok(batch.length);
    };
    await t.rejects(reading(), { message: 'the database went' });
  });
}
