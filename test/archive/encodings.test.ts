import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parquetMetadataAsync } from 'hyparquet';
import t from 'tap';
import { linesOf, valuesOf } from '../../src/archive/copy.ts';
import { encodingOf, GROUP_ROWS, scaled, writeParquet } from '../../src/archive/parquet-write.ts';
import { openSink } from '../../src/archive/sink.ts';
import type { Column, ColumnKind } from '../../src/archive/tables.ts';
import { fieldOf } from './copy-fields.ts';
import { parquetRows, unscaled } from './parquet-rows.ts';

const column = (name: string, kind: ColumnKind, isRequired = false): Column => ({
  name,
  kind,
  isRequired,
  type: kind,
});

/** Up to 15 digits before the point and 10 behind it, as the schema holds them at their widest. */
const decimal = fc
  .tuple(
    fc.boolean(),
    fc.bigInt({ min: 0n, max: 999_999_999_999_999n }),
    fc.integer({ min: 0, max: 9_999_999_999 }),
  )
  .map(([isNegative, whole, decimals]) => {
    const text = `${whole}.${String(decimals).padStart(10, '0')}`.replace(/\.?0+$/, '');
    return isNegative && text !== '0' ? `-${text}` : text;
  });

const anyText = fc.string({ unit: 'binary' }).filter((each) => !each.includes('\0'));

t.test('a value in the text format of PostgreSQL is read as it was written', async (t) => {
  const row = fc.array(fc.option(anyText), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(row, (values) => {
      const line = values.map(fieldOf).join('\t');
      t.same(valuesOf(line), values);
      t.notOk(line.includes('\n'));
    }),
  );
  t.same(valuesOf('\\N\ta\\tb\\\\N\t\\x'), [null, 'a\tb\\N', 'x']);
});

t.test('lines are the same wherever the bytes are cut, also inside a character', async (t) => {
  const text = 'first €\nsecond \u2028 still second\r\n\n\u{1f600} last';
  const bytes = Buffer.from(text);
  for (let size = 1; size < bytes.length; size += 1) {
    const lines: string[] = [];
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    for await (const some of linesOf(pieces())) lines.push(...some);
    t.same(lines, text.split('\n'));
  }
});

t.test('a decimal number in Parquet is the same number, to the last digit', async (t) => {
  const { encode, element } = encodingOf({ kind: 'decimal' });
  t.match(element, { converted_type: 'DECIMAL', precision: 25, scale: 10, type_length: 11 });
  const bytesOf = (value: bigint): Uint8Array => {
    const hex = BigInt.asUintN(88, value).toString(16).padStart(22, '0');
    return Buffer.from(hex, 'hex');
  };
  fc.assert(
    fc.property(decimal, (text) => {
      t.equal(unscaled(bytesOf(encode(text) as bigint)), text);
    }),
  );
  t.equal(scaled('-0.0000000001'), -1n);
  t.equal(unscaled(bytesOf(-1n)), '-0.0000000001');
  t.equal(unscaled(bytesOf(0n)), '0');
  t.equal(unscaled(bytesOf(scaled('100'))), '100');
  t.throws(() => scaled('0.00000000001'), new RangeError('more than 10 decimals: 0.00000000001'));
});

const COLUMNS = [
  column('id', 'integer', true),
  column('big', 'bigint'),
  column('flag', 'boolean'),
  column('value', 'decimal'),
  column('day', 'date'),
  column('at', 'instant'),
  column('name', 'text'),
  column('digest', 'bytes'),
];

/** A row as PostgreSQL writes it for Parquet, and as it takes it. */
const row = fc
  .record({
    big: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    flag: fc.option(fc.boolean()),
    value: fc.option(decimal),
    // 1800-01-01 to 2199-12-31.
    day: fc.option(fc.integer({ min: -62_091, max: 84_004 })),
    micros: fc.option(fc.integer({ min: -5_364_662_400_000_000, max: 7_258_118_400_000_000 })),
    name: fc.option(anyText),
    digest: fc.option(fc.uint8Array()),
  })
  .map((each) => ({
    written: [
      each.big === null ? null : String(each.big),
      each.flag === null ? null : each.flag ? 't' : 'f',
      each.value,
      each.day === null ? null : String(each.day),
      each.micros === null ? null : String(each.micros),
      each.name,
      each.digest === null ? null : Buffer.from(each.digest).toString('hex'),
    ],
    read: [
      each.big === null ? null : String(each.big),
      each.flag === null ? null : String(each.flag),
      each.value,
      each.day === null ? null : new Date(each.day * 86_400_000).toISOString().slice(0, 10),
      each.micros === null ? null : instant(each.micros),
      each.name,
      each.digest === null ? null : `\\x${Buffer.from(each.digest).toString('hex')}`,
    ],
  }));

/** Microseconds as an instant, by arithmetic of its own: those of a day are below 2^53. */
function instant(micros: number): string {
  const day = Math.floor(micros / 86_400_000_000);
  const rest = micros - day * 86_400_000_000;
  const seconds = new Date(day * 86_400_000 + Math.floor(rest / 1_000_000) * 1000).toISOString();
  return `${seconds.slice(0, 19)}.${String(rest % 1_000_000).padStart(6, '0')}Z`;
}

t.test('a Parquet file of several row groups is read as it was written', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'commodity-prices-parquet-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'file.parquet');
  const samples = fc.sample(row, 500);
  const sink = await openSink(path);
  const total = 2 * GROUP_ROWS + 7;
  const sampleOf = (id: number) => samples[id % samples.length];
  async function* pieces() {
    for (let id = 0; id < total; id += 1) {
      yield [[String(id), ...(sampleOf(id)?.written ?? [])].map(fieldOf).join('\t')];
    }
  }
  const { bytes } = await writeParquet(sink, COLUMNS, pieces());
  const handle = await open(path);
  t.equal((await handle.stat()).size, bytes);
  const buffer = new Uint8Array((await handle.readFile()).buffer);
  const metadata = await parquetMetadataAsync(buffer.buffer);
  t.equal(metadata.row_groups.length, 3);
  let id = 0;
  let isSame = true;
  for await (const text of parquetRows(handle, bytes, COLUMNS)) {
    for (const line of text.split('\n').slice(0, -1)) {
      const expected = [String(id), ...(sampleOf(id)?.read ?? [])];
      if (line !== expected.map(fieldOf).join('\t')) {
        isSame = t.same(valuesOf(line), expected) && false;
      }
      id += 1;
    }
  }
  await handle.close();
  t.ok(isSame);
  t.equal(id, total);
});
