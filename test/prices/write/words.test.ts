import t from 'tap';
import { CachedWords, putWords, Words, wordOf } from '../../../src/prices/write/words.ts';

/** Memory in which every unwritten word is a NaN, whose bits a store may change. */
function memory() {
  const out = Buffer.alloc(256, 0xff);
  return { out, view: new DataView(out.buffer, out.byteOffset, out.length) };
}

const textOf = (length: number): string =>
  Array.from({ length }, (_, index) => String.fromCharCode(0x21 + ((7 * index) % 94))).join('');

t.test('a text of any length is written at any offset, byte for byte', async (t) => {
  for (let length = 1; length <= 40; length += 1) {
    const { out, view } = memory();
    const text = textOf(length);
    const at = length % 11;
    t.equal(putWords(view, at, new Words(text)), at + length);
    t.equal(out.toString('latin1', at, at + length), text);
  }
  const { out, view } = memory();
  view.setFloat64(3, wordOf('~~~~~~~~'), true);
  t.equal(out.toString('latin1', 3, 11), '~~~~~~~~', 'the largest word');
});

t.test('a cached text has the bytes that were written first, whatever followed them', async (t) => {
  const written: number[] = [];
  const texts = new CachedWords(64, (out, at, key) => {
    written.push(key);
    return at + out.write(textOf(key), at, 'latin1');
  });
  for (let round = 0; round < 3; round += 1) {
    for (let key = 1; key <= 56; key += 1) {
      const { out, view } = memory();
      t.equal(texts.put(view, out, key, key, key), key + key);
      t.equal(out.toString('latin1', key, key + key), textOf(key));
    }
  }
  t.equal(written.length, 56, 'each text is written once');
});

t.test('a slot holds the text of its last key', async (t) => {
  const texts = new CachedWords(16, (out, at, key) => at + out.write(`<${key}>`, at, 'latin1'));
  for (const key of [5, 6, 5, -7, 123_456_789, 6]) {
    const { out, view } = memory();
    const end = texts.put(view, out, 1, 0, key);
    t.equal(out.toString('latin1', 1, end), `<${key}>`);
  }
});
