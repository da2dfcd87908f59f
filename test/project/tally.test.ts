import t from 'tap';
import { TapReader, talliesOf, tallyOf } from '../support/run/tally.ts';

const text = (...lines: string[]): string => `${lines.join('\n')}\n`;

t.test('assertions are counted, not the tests around them', async (t) => {
  const tap = text(
    '# Subtest: a.test.ts',
    '    # Subtest: one',
    '        ok 1 - first',
    '        ok 2 - second',
    '        1..2',
    '    ok 1 - one # time=1ms',
    '    ok 2 - alone',
    '    1..2',
    'ok 1 - a.test.ts # time=2ms',
    '1..1',
  );
  t.strictSame(tallyOf(tap), { passed: 3, failed: 0 });
});

t.test('a failure counts once, with the titles and details that lead to it', async (t) => {
  const seen: unknown[] = [];
  const reader = new TapReader({
    onFailure: (titles, details) => seen.push({ titles, details }),
    onFile: (line) => seen.push(line),
  });
  const tap = text(
    '# Subtest: a.test.ts',
    '    # Subtest: one',
    '        not ok 1 - first',
    '          ---',
    '          text: |',
    '            not ok 7 - this is text',
    '          ...',
    '        1..1',
    '    not ok 1 - one # time=1ms',
    '      ---',
    '      at: here',
    '      ...',
    'not ok 1 - a.test.ts',
  );
  for (const line of tap.split('\n')) reader.line(line);
  reader.end();
  t.match(reader, { passed: 0, failed: 1 });
  t.strictSame(seen, [
    { titles: ['a.test.ts', 'one', 'first'], details: ['text: |', '  not ok 7 - this is text'] },
    'not ok 1 - a.test.ts',
  ]);
});

t.test('a test that fails beside its assertions is a failure of its own', async (t) => {
  const crash = text(
    '# Subtest: a.test.ts',
    '    ok 1 - first',
    'not ok 1 - a.test.ts',
    'not ok 2 - b.test.ts',
    'Bail out! no more',
  );
  t.strictSame(tallyOf(crash), { passed: 1, failed: 3 });
});

t.test('skipped and to-do points are neither', async (t) => {
  const later = ['to', 'do'].join('');
  const tap = text('ok 1 - a # SKIP', `not ok 2 - b # ${later} it`, `ok 3 - c # ${later}`, 'ok 4');
  t.strictSame(tallyOf(tap), { passed: 1, failed: 0 });
});

t.test('each file counts by itself', async (t) => {
  const tap = text(
    '# Subtest: a.test.ts',
    '    ok 1 - first',
    '    not ok 2 - second',
    'not ok 1 - a.test.ts # time=2ms',
    '# Subtest: b.test.ts',
    '    ok 1 - first',
    'ok 2 - b.test.ts # time=2ms',
    'not ok 3 - c.test.ts',
  );
  t.strictSame(Object.fromEntries(talliesOf(tap)), {
    'a.test.ts': { passed: 1, failed: 1 },
    'b.test.ts': { passed: 1, failed: 0 },
    'c.test.ts': { passed: 0, failed: 1 },
  });
});

t.test('a file that shared its process with others counts and is reported by itself', async (t) => {
  const tap = text(
    '# Subtest: ../tmp/x/http-1.test.mjs',
    '    # Subtest: test/http/a.test.ts',
    '        ok 1 - first',
    '        not ok 2 - second',
    '    not ok 1 - test/http/a.test.ts # time=2ms',
    '    # Subtest: test/http/b.test.ts',
    '        ok 1 - first',
    '    ok 2 - test/http/b.test.ts # time=2ms',
    'not ok 1 - ../tmp/x/http-1.test.mjs # time=5ms',
    'not ok 2 - ../tmp/x/http-2.test.mjs # time=5ms',
  );
  t.strictSame(Object.fromEntries(talliesOf(tap)), {
    'test/http/a.test.ts': { passed: 1, failed: 1 },
    'test/http/b.test.ts': { passed: 1, failed: 0 },
  });
  t.strictSame(tallyOf(tap), { passed: 2, failed: 2 });
});
