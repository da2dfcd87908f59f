import { Readable } from 'node:stream';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import t from 'tap';
import { newKey } from '../../src/auth/key-format.ts';
import { type FoundKey, scanForKeys } from '../../src/auth/key-scan.ts';

/** What is found in bytes that come in pieces of a size. */
async function foundIn(bytes: Buffer, size: number): Promise<FoundKey[]> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  const found: FoundKey[] = [];
  for await (const key of scanForKeys(Readable.from(pieces))) found.push(key);
  return found;
}

const [one, other] = [newKey(), newKey()];
const wrong = `${one.text.slice(0, -1)}${one.text.endsWith('a') ? 'b' : 'a'}`;
const text = `key ${other.text}\n ${one.text} ${wrong}\r\nlast "${other.text}"${one.text}`;
const places = [
  { id: other.publicId, line: 1, column: 5 },
  { id: one.publicId, line: 2, column: 2 },
  { id: other.publicId, line: 3, column: 7 },
  { id: one.publicId, line: 3, column: 66 },
];

const utf8 = Buffer.from(text);
const utf16le = Buffer.from(text, 'utf16le');
const utf16be = Buffer.from(text, 'utf16le').swap16();
const ENCODED = {
  'UTF-8': utf8,
  'UTF-8 with its mark': Buffer.from(`\ufeff${text}`),
  'UTF-16, the low byte first': utf16le,
  'UTF-16, the low byte first, with its mark': Buffer.from(`\ufeff${text}`, 'utf16le'),
  'UTF-16, the high byte first': utf16be,
  'UTF-16, the high byte first, with its mark': Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
};

for (const [encoding, bytes] of Object.entries(ENCODED)) {
  t.test(`leaked keys are found wherever a file in ${encoding} is cut`, async (t) => {
    for (let size = 1; size <= bytes.length; size += 1) {
      if (!t.same(await foundIn(bytes, size), places, `in pieces of ${size}`)) break;
    }
  });
}

t.test('a key is found in a file of several encodings, and behind one that is cut', async (t) => {
  const line = { line: 1, column: 1 };
  const mixed = Buffer.concat([Buffer.from('x'), utf16le, utf16be, utf8]);
  t.equal((await foundIn(mixed, 7)).length, 12);
  for (const cut of [10, 40, 57]) {
    const begun = other.text.slice(0, cut);
    const found = await foundIn(Buffer.from(`${begun}\0\0${one.text}`), 999);
    t.same(found, [{ ...line, id: one.publicId, column: cut + 1 }], `after ${cut} letters`);
  }
});

/** What programs make of a text that no library of Node compresses to. */
const HEXADECIMAL = {
  xz: 'fd377a585a000004e6d6b4460200210116000000742fe5a3',
  bzip2: '425a68393141592653599a89b4220000001000',
  'zip of nothing': '504b0506000000000000000000000000000000000000',
  zip: '504b03040a00000000000000',
};

t.test('what is compressed is told as such, and never as a text without a key', async (t) => {
  const packed = Object.entries(HEXADECIMAL).map(([name, digits]): [string, Buffer] => [
    name,
    Buffer.from(digits, 'hex'),
  ]);
  packed.push(['gzip', gzipSync(text)], ['zstd', zstdCompressSync(text)]);
  for (const [name, bytes] of packed) {
    const [kind = ''] = name.split(' ');
    for (const size of [1, 7, bytes.length]) {
      const error = {
        name: 'PackedError',
        message: new RegExp(`compressed \\(${kind}\\): unpack`),
      };
      await t.rejects(foundIn(bytes, size), error, `${name} in pieces of ${size}`);
    }
  }
});

t.test('a text that begins like something compressed is searched', async (t) => {
  for (const begin of ['BZh9', 'BZh91AY&S', 'PK', 'P*M', '7zXZ', '']) {
    const found = await foundIn(Buffer.from(`${begin}\n${one.text}`), 5);
    t.match(found, [{ id: one.publicId, line: 2, column: 1 }], begin);
  }
  for (const short of ['', 'B', 'BZh9', '\u00ff']) t.same(await foundIn(Buffer.from(short), 1), []);
});
