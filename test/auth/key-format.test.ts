import fc from 'fast-check';
import t from 'tap';
import { newKey, publicIdOf } from '../../src/auth/keys/format.ts';
import { verifyKey } from '../../src/auth/keys/verify.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

t.test('a key has the released form, and its id can be read from it', async (t) => {
  const keys = Array.from({ length: 1_000 }, newKey);
  t.ok(keys.every(({ text }) => /^cps_live_[0-9A-Za-z]{10}_[0-9A-Za-z]{38}$/.test(text)));
  t.ok(keys.every(({ text, publicId }) => publicIdOf(text) === publicId));
  t.equal(new Set(keys.map(({ text }) => text)).size, keys.length);
});

t.test('a key made by the first release is still a key', async (t) => {
  t.equal(publicIdOf('cps_live_7Kq3ZbT0xP_4mXrW8nJc2VhY6tLq0sDfGb5KzPa1EuR1i83eJ'), '7Kq3ZbT0xP');
});

t.test('each of the 62 digits is equally likely', async (t) => {
  const counts = new Map([...BASE62].map((digit) => [digit, 0]));
  const keys = 2_000;
  for (let count = 0; count < keys; count += 1) {
    for (const digit of newKey().text.slice(20, 52))
      counts.set(digit, (counts.get(digit) ?? 0) + 1);
  }
  const expected = (keys * 32) / 62;
  const chiSquare = [...counts.values()].reduce(
    (sum, n) => sum + (n - expected) ** 2 / expected,
    0,
  );
  // 61 degrees of freedom: more than 130 happens once in a million runs.
  t.ok(chiSquare < 130, `chi-square is ${chiSquare}`);
  t.equal(counts.size, 62);
});

t.test('a key with any one character changed is refused without a lookup', async (t) => {
  let lookups = 0;
  const find = async () => {
    lookups += 1;
    return undefined;
  };
  const change = fc.record({
    at: fc.nat({ max: 57 }),
    to: fc.oneof(fc.constantFrom(...BASE62, '_'), fc.string({ minLength: 1, maxLength: 1 })),
  });
  await fc.assert(
    fc.asyncProperty(change, async ({ at, to }) => {
      const { text } = newKey();
      fc.pre(text[at] !== to);
      const changed = text.slice(0, at) + to + text.slice(at + 1);
      const code = await verifyKey(find, changed).catch((error) => error.code);
      return code === 'invalid_api_key';
    }),
    { numRuns: 5_000 },
  );
  t.equal(lookups, 0);
});

t.test('a text without the form of a key is refused without a lookup', async (t) => {
  const { text } = newKey();
  const texts = ['', ' ', 'cps_live_', text.slice(0, -1), `${text}0`, ` ${text}`, `${text}\n`];
  for (const bad of [...texts, text.replace('live', 'test'), `${text}, ${text}`]) {
    t.equal(publicIdOf(bad), null, JSON.stringify(bad));
  }
  fc.assert(fc.property(fc.string(), (any) => publicIdOf(any) === null));
});
