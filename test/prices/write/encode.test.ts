import fc from 'fast-check';
import t from 'tap';
import { nativePoints } from '../../../src/conversion/columns.ts';
import { ColumnsBuilder } from '../../../src/prices/series/collector.ts';
import { dayText, decimalText, instantText, values } from '../../support/prices/decimals.ts';
import { pointsText, pointTexts } from '../../support/prices/points-text.ts';

const FIRST_DAY = -73_048;
const LAST_DAY = 73_048;
const MICROS_PER_DAY = 86_400_000_000n;

const instant = fc.oneof(
  fc.bigInt({
    min: BigInt(FIRST_DAY) * MICROS_PER_DAY,
    max: BigInt(LAST_DAY + 1) * MICROS_PER_DAY - 1n,
  }),
  fc
    .integer({ min: FIRST_DAY, max: LAST_DAY })
    .chain((day) =>
      fc
        .constantFrom(0n, 1n, -1n, 500_000n, 57_600_000_000n)
        .map((micros) => BigInt(day) * MICROS_PER_DAY + micros),
    )
    .filter((micros) => micros >= BigInt(FIRST_DAY) * MICROS_PER_DAY),
);

const point = fc.record({
  day: fc.integer({ min: FIRST_DAY, max: LAST_DAY }),
  values,
  publishedAt: instant,
  corrections: fc.oneof(fc.nat(12), fc.nat(2_147_483_647)),
});

t.test('the oracle of these tests knows its calendar', async (t) => {
  t.equal(dayText(0), '2000-01-01');
  t.equal(dayText(FIRST_DAY), '1800-01-01');
  t.equal(dayText(LAST_DAY), '2199-12-31');
  t.equal(dayText(59), '2000-02-29');
  t.equal(dayText(-36_465), '1900-03-01');
  t.equal(instantText(-1n), '1999-12-31T23:59:59.999999Z');
  t.equal(decimalText(-5n, 3), '-0.005');
});

t.test('points are encoded to the digit, for every value that the schema admits', async (t) => {
  let encoded = 0;
  fc.assert(
    fc.property(fc.array(point, { maxLength: 90, size: 'max' }), (points) => {
      const builder = new ColumnsBuilder();
      const texts = points.map(({ day, values: { scale, three, hasLow, hasHigh }, ...rest }) => {
        const [low = 0n, mid = 0n, high = 0n] = three;
        builder.add(
          day,
          hasLow ? Number(low) : Number.NaN,
          Number(mid),
          hasHigh ? Number(high) : Number.NaN,
          scale,
          Number(rest.publishedAt),
          rest.corrections,
        );
        const members = [
          `"date":"${dayText(day)}"`,
          `"low":${hasLow ? decimalText(low, scale) : 'null'}`,
          `"mid":${decimalText(mid, scale)}`,
          `"high":${hasHigh ? decimalText(high, scale) : 'null'}`,
          `"publishedAt":"${instantText(rest.publishedAt)}"`,
          `"corrections":${rest.corrections}`,
        ];
        return `{${members.join(',')}}`;
      });
      encoded += points.length;
      const wanted = texts.join(',');
      const found = pointsText(nativePoints(builder.finish())).toString('latin1');
      if (found !== wanted) throw new Error(`${found}\nshould be\n${wanted}`);
    }),
    { numRuns: 400 },
  );
  t.ok(encoded > 10_000, `${encoded} points`);
});

t.test('no points are no bytes', async (t) => {
  t.equal(pointsText(nativePoints(new ColumnsBuilder().finish())).length, 0);
});

t.test('the longest point there can be fits, thousands of times over', async (t) => {
  const builder = new ColumnsBuilder();
  for (let index = 0; index < 5_000; index += 1) {
    const low = -999_999_999_999_999;
    builder.add(FIRST_DAY, low, low, low, 10, -6_311_433_599_999_999, 2_147_483_647);
  }
  const text = `[${pointsText(nativePoints(builder.finish())).toString('latin1')}]`;
  const points = JSON.parse(text);
  t.equal(points.length, 5_000);
  t.same(points.at(-1), points[0]);
  t.match(text, '"low":-99999.9999999999,"mid"');
});

t.test('slices have each point once, and none is long', async (t) => {
  const builder = new ColumnsBuilder();
  for (let day = 0; day < 3_000; day += 1) {
    builder.add(day, day * 3, day * 4, day * 5, day % 11, day * 86_400_000_000, day % 3);
  }
  const points = nativePoints(builder.finish());
  const slices = pointTexts(points);
  t.ok(slices.length > 3 && slices.every(({ length }) => length > 0 && length < 66_560));
  const written = JSON.parse(`[${Buffer.concat(slices)}]`) as { date: string }[];
  t.same([written.length, new Set(written.map(({ date }) => date)).size], [3_000, 3_000]);
});
