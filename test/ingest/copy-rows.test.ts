import { finished } from 'node:stream/promises';
import fc from 'fast-check';
import type pg from 'pg';
import { from } from 'pg-copy-streams';
import t from 'tap';
import { CopyRows, parsedValue } from '../../src/ingest/staging/copy-rows.ts';
import type { StagedValue } from '../../src/ingest/staging/validate.ts';
import { testDatabase } from '../support/database/database.ts';
import { inTransaction } from '../support/database/minimal-data.ts';

interface WrittenRow extends StagedValue {
  readonly line: number;
  readonly place: number;
  readonly written: string | null;
}

const COLUMNS = 'line, series_no, date, low, mid, high, published_at, place, written';

/** The rows as PostgreSQL reads them from a binary COPY, as text. */
async function copied(client: pg.PoolClient, rows: readonly WrittenRow[]): Promise<unknown[]> {
  await client.query(`create temp table copied (line bigint, series_no integer, date date,
    low numeric, mid numeric, high numeric, published_at timestamptz, place integer, written text)
    on commit drop`);
  const encoder = new CopyRows(true);
  for (const [index, row] of rows.entries()) {
    encoder.add(row.line, index, parsedValue(row));
    encoder.addPlace(row.place, row.written);
  }
  encoder.end();
  const copy = client.query(from(`copy copied (${COLUMNS}) from stdin (format binary)`));
  copy.end(encoder.take());
  await finished(copy);
  const { rows: found } = await client.query(`select line::float8 as line, series_no as index,
    date::text as date, low::text, mid::text, high::text, place, written,
    to_char(published_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "publishedAt"
    from copied order by series_no`);
  return found;
}

const inMicroseconds = (instant: string | null): string | null =>
  instant && `${instant.slice(0, 19)}.${instant.slice(20, -1).padEnd(6, '0')}Z`;

const expected = (rows: readonly WrittenRow[]): unknown[] =>
  rows.map(({ publishedAt, ...row }, index) => ({
    ...row,
    index,
    publishedAt: inMicroseconds(publishedAt),
  }));

/** Plain decimals in their shortest form, of at most 15 digits and 10 decimals. */
const decimal = fc
  .tuple(fc.boolean(), fc.bigInt({ min: 0n, max: 10n ** 15n - 1n }), fc.nat(14), fc.nat(10))
  .map(([isNegative, digits, shift, scale]) => {
    const size = digits / 10n ** BigInt(shift);
    const text = String(size).padStart(scale + 1, '0');
    const at = text.length - scale;
    const fraction = text.slice(at).replace(/0+$/, '');
    const plain = `${text.slice(0, at)}${fraction && `.${fraction}`}`;
    return isNegative && size > 0n ? `-${plain}` : plain;
  });
const day = fc
  .integer({
    min: Date.parse('1800-01-01') / 86_400_000,
    max: Date.parse('2199-12-31') / 86_400_000,
  })
  .map((days) => new Date(days * 86_400_000).toISOString().slice(0, 10));
const instant = fc
  .tuple(day, fc.nat(86_399), fc.stringMatching(/^(\.\d{1,6})?$/))
  .map(([date, seconds, fraction]) => {
    const clock = new Date(seconds * 1_000).toISOString().slice(11, 19);
    return `${date}T${clock}${fraction}Z`;
  });
const row: fc.Arbitrary<WrittenRow> = fc.record({
  line: fc.maxSafeNat(),
  date: day,
  low: fc.option(decimal),
  mid: fc.option(decimal),
  high: fc.option(decimal),
  publishedAt: fc.option(instant),
  place: fc.nat(2 ** 31 - 1),
  written: fc.option(
    fc.string({ unit: 'grapheme', maxLength: 400 }).map((text) => text.replaceAll('\0', ' ')),
  ),
});

const EDGES = ['0', '1', '-1', '0.0001', '0.00001', '9999', '10000', '-10000.0001', '100000000']
  .concat([
    '999999999999999',
    '-999999999999999',
    '99999.9999999999',
    '0.0000000001',
    '1000000000000',
  ])
  .map((mid): WrittenRow => {
    const rest = { low: null, high: null, publishedAt: null, place: 0, written: null };
    return { line: 2 ** 32 - 1, date: '2000-01-01', mid, ...rest };
  });

t.test('PostgreSQL reads each row that is copied in binary as the value it was', async (t) => {
  const { pool } = await testDatabase(t);
  t.strictSame(await inTransaction(pool, (client) => copied(client, EDGES)), expected(EDGES));
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 500, maxLength: 1_000 }), async (rows) => {
      const found = await inTransaction(pool, (client) => copied(client, rows));
      t.strictSame(found, expected(rows));
      return t.passing();
    }),
    { numRuns: 10, endOnFailure: true },
  );
});
