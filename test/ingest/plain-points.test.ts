import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { csv } from '../../src/ingest/formats/csv.ts';
import { Problems } from '../../src/ingest/records/problems.ts';
import { openSource } from '../../src/ingest/records/source-file.ts';
import type { PointLines, PointRecord } from '../../src/ingest/records/source-record.ts';
import { CopyRows, type ParsedValue, parsedValue } from '../../src/ingest/staging/copy-rows.ts';
import { PlainPoints } from '../../src/ingest/staging/plain-points.ts';
import { type Bounds, Validator } from '../../src/ingest/staging/validate.ts';

const HEADER = 'code,date,low,mid,high,publishedAt';
const BOUNDS: Bounds = { dateMax: '2026-03-06', now: '2026-03-05T12:00:00.000001Z' };

/** The lines of a file after its header, as the format hands them to staging. */
async function linesOf(t: Test, header: string, lines: readonly string[]) {
  const path = join(t.testdir(), 'points.csv');
  writeFileSync(path, [header, ...lines].join('\n'));
  const file = await openSource(path);
  const problems = new Problems();
  const parts: PointLines[] = [];
  for await (const part of csv.read({ file, problems })) if ('bytes' in part) parts.push(part);
  await file.close();
  return { parts, problems };
}

function encoded(code: string, value: ParsedValue): string {
  const rows = new CopyRows(false);
  rows.add(1, 1, value);
  return `${code} ${rows.take().toString('hex')}`;
}

/** The same line by way of a record; null if it is no valid point. */
function byRecord({ recordsOf }: PointLines, problems: Problems, bytes: Buffer): string | null {
  const before = problems.total;
  const records = recordsOf(1, bytes);
  const validator = new Validator(BOUNDS, problems, 'all');
  const [record] = records as readonly PointRecord[];
  if (records.length !== 1 || !record || validator.codeFails(record)) return null;
  const value = validator.point(record);
  return value === null || problems.total > before
    ? null
    : encoded(record.code, parsedValue(value));
}

/** Each line in both ways; the first is null for a line that has to become a record. */
async function bothWays(t: Test, header: string, lines: readonly string[]) {
  const { parts, problems } = await linesOf(t, header, lines);
  return parts.flatMap((part) => {
    const codes: string[] = [];
    const plain = new PlainPoints(part.columns, BOUNDS, (code) => codes.push(code) - 1);
    const results: { plain: string | null; record: string | null }[] = [];
    for (let start = 0; start <= part.bytes.length; start = plain.end + 1) {
      const isPlain = plain.parse(part.bytes, start, 1);
      const line = part.bytes.subarray(start, plain.end);
      results.push({
        plain: isPlain ? encoded(codes[plain.series] ?? '', plain) : null,
        record: byRecord(part, problems, line),
      });
    }
    return results;
  });
}

const PLAIN = [
  'A,2026-03-05,1,2,3,2026-03-05T11:59:59Z',
  'A,2026-03-06,,2,,',
  'a-1/b,1800-01-01,-3.25,-2.5,-1,1800-01-01T00:00:00Z',
  'A,2024-02-29,0,0,0,',
  'A,2024-02-29,-0,0.0,00.10,',
  'A,2020-01-01,999999999999999,999999999999999,999999999999999,',
  'A,2020-01-01,-99999.9999999999,0.0000000001,99999.9999999999,',
  'A,2020-01-01,10000,100000000,1000000000000,2020-01-01T23:59:59Z\r',
];

t.test('an ordinary line is read straight from its bytes', async (t) => {
  const both = await bothWays(t, HEADER, PLAIN);
  t.equal(both.length, PLAIN.length);
  for (const [index, { plain, record }] of both.entries()) {
    t.not(plain, null, PLAIN[index] ?? '');
    t.equal(plain, record, PLAIN[index] ?? '');
  }
});

const LEFT = [
  'A,2026-03-07,,2,,',
  'A,1799-12-31,,2,,',
  'A,2023-02-29,,2,,',
  'A,2026-03-05,,2,,2026-03-05T12:00:01Z',
  'A,2026-03-05,,2,,2026-03-05T10:00:00+01:00',
  'A,2026-03-05,3,2,,',
  'A,2026-03-05,,2,1,',
  'A,2026-03-05,,1000000000000000,,',
  'A,2026-03-05,100000,100000.0000000001,,',
  'A,2026-03-05,,0.00000000001,,',
  'A,2026-03-05,,5.,,',
  'A,2026-03-05,,.5,,',
  'A,2026-03-05,,-,,',
  'A,2026-03-05,,1e5,,',
  'A,2026-03-05,,,,',
  ',2026-03-05,,2,,',
  `${'A'.repeat(65)},2026-03-05,,2,,`,
  'Ä,2026-03-05,,2,,',
  'A,2026-03-05,,2,',
  'A,2026-03-05,,2,,,',
  '',
  'A,no day,,2,,',
];

t.test('no line is read straight from its bytes that the rules for records refuse', async (t) => {
  const both = await bothWays(t, HEADER, LEFT);
  t.equal(both.length, LEFT.length);
  for (const [index, { plain }] of both.entries()) t.equal(plain, null, LEFT[index] ?? '');
});

const digits = fc.stringMatching(/^-?\d{0,6}(\.\d{0,4})?$/);
const decimal = fc.oneof(
  { arbitrary: fc.constant(''), weight: 6 },
  { arbitrary: digits, weight: 4 },
  { arbitrary: fc.stringMatching(/^-?\d{0,16}(\.\d{0,12})?$/), weight: 2 },
);
const day = fc.oneof(
  fc.stringMatching(/^(19\d\d|20[01]\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d)$/),
  fc.stringMatching(/^(18|19|20|21)\d\d-(0\d|1[0-3])-[0-3]\d$/),
);
const instant = fc.stringMatching(
  /^20[012]\d-(0\d|1[0-2])-[0-2]\dT[0-2]\d:[0-6]\d:[0-6]\d(\.\d{1,7})?Z$/,
);
const line = fc
  .tuple(
    fc.constantFrom('A', 'b', 'C-1'),
    day,
    decimal,
    fc.oneof({ arbitrary: fc.stringMatching(/^-?\d{1,6}(\.\d{1,4})?$/), weight: 4 }, decimal),
    decimal,
    fc.oneof(fc.constant(''), instant),
  )
  .map((fields) => fields.join(','));
/** A line of which one character may be replaced. */
const damaged = fc
  .tuple(
    line,
    fc.array(fc.tuple(fc.nat(70), fc.constantFrom(...'0.,-TZ:e \r\0\u00e9/')), { maxLength: 1 }),
  )
  .map(([text, changes]) => {
    const characters = [...text];
    for (const [at, character] of changes) if (at < characters.length) characters[at] = character;
    return characters.join('');
  });

t.test(
  'a line that is read straight from its bytes is staged as its record would be',
  async (t) => {
    let taken = 0;
    const sample = fc.array(damaged, { minLength: 200, maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(sample, async (lines) => {
        for (const { plain, record } of await bothWays(t, HEADER, lines)) {
          if (plain === null) continue;
          taken += 1;
          if (plain !== record) throw new Error(`${plain} is not ${record}`);
        }
      }),
      { numRuns: 20, endOnFailure: true },
    );
    t.ok(taken > 500, `${taken} lines were taken`);
  },
);

t.test('a line with more or fewer fields than the header is no point', async (t) => {
  const lines = ['2026-03-05,2,A,B', '2026-03-05,2', '2026-03-05,2,A,'];
  const both = await bothWays(t, 'date,mid,code', lines);
  t.same(
    both.map(({ plain }) => plain),
    [null, null, null],
  );
});

t.test('each line of a long file is handed on once, with its number', async (t) => {
  const lines = Array.from({ length: 60_000 }, (_, index) => `A-${index + 2},2026-03-05,,1,,`);
  const { parts } = await linesOf(t, HEADER, lines);
  t.ok(parts.length > 3, `${parts.length} parts`);
  const found = parts.flatMap(({ line, bytes }) =>
    bytes
      .toString()
      .split('\n')
      .map((text, index) => `${line + index} ${text}`),
  );
  t.same(
    found,
    lines.map((text, index) => `${index + 2} ${text}`),
  );
});

t.test('the columns of a file may have any order, and some be absent', async (t) => {
  const swapped = await bothWays(t, 'mid,code,date', ['1.50,A,2026-03-05', '2,B,2026-03-04']);
  t.equal(swapped.length, 2);
  for (const { plain, record } of swapped) {
    t.not(plain, null);
    t.equal(plain, record);
  }
});
