import fc from 'fast-check';
import t from 'tap';
import { Int128, scaledText } from '../../../src/prices/write/int128.ts';

/** A number written by arithmetic of its own: 16 bytes in two's complement, the highest first. */
function expected(digits: bigint, power: number): string {
  const value = BigInt.asUintN(128, digits * 10n ** BigInt(power));
  return value.toString(16).padStart(32, '0');
}

function written(number: Int128): readonly [string, string] {
  const [big, little] = [Buffer.alloc(18), Buffer.alloc(18)];
  number.writeBigEndian(big, 1);
  number.writeLittleEndian(little, 1);
  t.same([big[0], big[17], little[0], little[17]], [0, 0, 0, 0], 'nothing beside it');
  const reversed = Buffer.from(little.subarray(1, 17)).reverse();
  return [big.toString('hex', 1, 17), reversed.toString('hex')];
}

const whole = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -1_000_000, max: 1_000_000 }),
  fc.constantFrom(0, -0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
);

t.test('a number of a column is written to the last digit, whatever its scale', async () => {
  const number = new Int128();
  fc.assert(
    fc.property(
      whole,
      fc.integer({ min: 0, max: 18 }),
      fc.constantFrom(10, 18),
      (scaled, decimals, scale) => {
        const column = {
          scaled: Float64Array.of(Number.NaN, scaled),
          scale: Uint8Array.of(0, decimals),
          wide: null,
        };
        const excess = decimals - scale;
        const fits = excess <= 0 || BigInt(scaled) % 10n ** BigInt(excess) === 0n;
        if (number.setPoint(column, 1, scale) !== fits) return false;
        if (!fits) return true;
        const text =
          excess > 0
            ? expected(BigInt(scaled) / 10n ** BigInt(excess), 0)
            : expected(BigInt(scaled), -excess);
        return written(number).every((each) => each === text);
      },
    ),
    { numRuns: 3_000 },
  );
});

t.test('a text is written to the last digit, or not at all', async (t) => {
  const number = new Int128();
  const cases = [
    ['0', 10],
    ['-0.0000000001', 10],
    ['9'.repeat(28), 10],
    [`-${'9'.repeat(20)}.${'9'.repeat(18)}`, 18],
    ['12345678901234567890.5', 18],
  ] as const;
  for (const [text, scale] of cases) {
    t.ok(number.setDecimal(text, scale), text);
    const [before = '', after = ''] = text.split('.');
    const hex = expected(BigInt(before + after.padEnd(scale, '0')), 0);
    t.same(written(number), [hex, hex], text);
  }
  const wide = { scaled: Float64Array.of(Infinity), scale: Uint8Array.of(0) };
  const known = new Map([[0, '-12345678901234567890.5']]);
  t.ok(number.setPoint({ ...wide, wide: known }, 0, 18));
  const hex = expected(-123456789012345678905n, 17);
  t.same(written(number), [hex, hex]);
  t.notOk(number.setPoint({ ...wide, wide: null }, 0, 18), 'a number without digits is no zero');
  for (const [text, scale] of [
    ['0.00000000001', 10],
    ['9'.repeat(29), 10],
    [`-1${'0'.repeat(20)}`, 18],
  ] as const) {
    t.equal(scaledText(text, scale), null, text);
    t.notOk(number.setDecimal(text, scale), text);
  }
});
