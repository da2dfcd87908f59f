import t from 'tap';
import { openProgress as showProgress } from '../../../src/cli/progress.ts';
import type { LoadProgress } from '../../../src/ingest/load/request.ts';

/** The progress lines of a load of `total` bytes, with one step per second. */
function shown(
  isTerminal: boolean,
  total: number | null,
  steps: readonly number[],
  rowsOf: (bytes: number) => number = (bytes) => bytes * 1_000,
): string[] {
  const texts: string[] = [];
  let now = 0;
  const display = showProgress({ isTerminal, write: (text) => texts.push(text), now: () => now });
  const state = (step: LoadProgress['step'], bytes: number): LoadProgress => ({
    step,
    rows: rowsOf(bytes),
    bytes,
    bytesTotal: total,
  });
  for (const bytes of steps) {
    now += 1_000;
    display.update(state('reading', bytes));
  }
  const last = steps.at(-1) ?? 0;
  for (const step of ['comparing', 'writing'] as const) display.update(state(step, last));
  display.end();
  return texts;
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

t.test('in a pipe there is one plain line for each 10 %, with rate and time left', async (t) => {
  const lines = shown(false, 100, upTo(100));
  t.equal(lines.length, 12);
  t.equal(lines[0], '10 % · 10,000 rows · 1,000 rows/s · 1:30 left\n');
  t.equal(lines[4], '50 % · 50,000 rows · 1,000 rows/s · 0:50 left\n');
  t.equal(lines[9], '100 % · 100,000 rows · 1,000 rows/s\n');
  t.equal(lines[10], 'comparing with the database · 100,000 rows\n');
  t.equal(lines[11], 'writing · 100,000 rows\n');
  t.notOk(/[\p{Cc}]/u.test(lines.join('').replaceAll('\n', '')), 'no control characters');
  t.strictSame(
    shown(false, 100, [5, 35, 99, 100])
      .slice(0, 3)
      .map((line) => line.split(' ·')[0]),
    ['30 %', '90 %', '100 %'],
    'a step over several tenths is one line',
  );
});

t.test('in a pipe no share of a file is announced before its first row', async (t) => {
  const rowsOf = (bytes: number): number => (bytes < 100 ? 0 : 7);
  t.equal(shown(false, 100, [50, 99, 100], rowsOf)[0], '100 % · 7 rows · 2 rows/s\n');
});

t.test('hashing is shown on a terminal, and does not count as reading', async (t) => {
  const show = (isTerminal: boolean): string[] => {
    const texts: string[] = [];
    let now = 0;
    const display = showProgress({ isTerminal, write: (text) => texts.push(text), now: () => now });
    const state = { rows: 0, bytes: 50, bytesTotal: 100 };
    for (const time of [1_000, 9_000]) {
      now = time;
      display.update({ ...state, step: 'hashing' });
    }
    display.update({ ...state, step: 'reading', bytes: 0 });
    now = 10_000;
    display.update({ ...state, step: 'reading', rows: 500 });
    return texts;
  };
  const [first, , , last] = show(true);
  t.equal(first, '\r\u001b[2K[############------------] 50 % · hashing the file');
  t.match(last, /50 % · 500 rows · 500 rows\/s · 0:01 left$/);
  t.strictSame(show(false), ['50 % · 500 rows · 500 rows/s · 0:01 left\n']);
});

t.test('on a terminal one line changes: a bar, rate and time left', async (t) => {
  const texts = shown(true, 100, [25, 100]);
  t.equal(
    texts[0],
    '\r\u001b[2K[######------------------] 25 % · 25,000 rows · 25,000 rows/s · 0:03 left',
  );
  t.match(texts[1], /\[#{24}\] 100 % · 100,000 rows · 50,000 rows\/s$/);
  t.equal(texts[2], '\r\u001b[2Kcomparing with the database · 100,000 rows');
  t.equal(texts.at(-1), '\r\u001b[2K', 'the line is cleared for the result');
  const often: string[] = [];
  const quick = showProgress({ isTerminal: true, write: (text) => often.push(text), now: () => 1 });
  for (const bytes of upTo(50)) quick.update({ step: 'reading', rows: 1, bytes, bytesTotal: 50 });
  t.equal(often.length, 1, 'fifty updates at one moment are one');
});

t.test('progress of an archive part of unknown size is shown in rows', async (t) => {
  const lines = shown(false, null, upTo(25), (bytes) => bytes * 100_000);
  t.strictSame(lines.slice(0, 2), [
    '1,000,000 rows · 100,000 rows/s\n',
    '2,000,000 rows · 100,000 rows/s\n',
  ]);
});

t.test('one row is shown in the singular', async (t) => {
  const texts: string[] = [];
  const display = showProgress({
    isTerminal: false,
    write: (text) => texts.push(text),
    now: () => 0,
  });
  display.update({ step: 'writing', rows: 1, bytes: 9, bytesTotal: 9 });
  t.strictSame(texts, ['writing · 1 row\n']);
});
