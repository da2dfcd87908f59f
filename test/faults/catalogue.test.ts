import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { type Figures, within } from '../support/process/figures.ts';
import { partsOf, tookText } from '../support/run/fault-run.ts';
import { sumsOf } from '../support/run/fault-sums.ts';
import { tableOf, verdictOf } from '../support/run/fault-table.ts';
import { checkBounds } from '../support/run/faults.ts';
import { byLength } from '../support/run/length.ts';
import { BESIDE_OTHERS, FAULTS } from './catalogue.ts';

const run = promisify(execFile);
/** Faults of mechanisms that the service no longer has: the rolling restart of its workers. */
const GONE = [36];

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

/** The ids of the declared faults. */
const declared = globSync('test/faults/**/*.test.ts', { cwd: ROOT, exclude: ['**/catalogue*'] })
  .flatMap((path) => [...read(path).matchAll(/'(F\d+[a-z]?)',/g)])
  .map(([, id = '']) => id);

t.test(
  'each fault of the catalogue is tested once, here or in a file that the catalogue names',
  async (t) => {
    const all = [...declared, ...Object.keys(FAULTS)];
    t.equal(new Set(all).size, all.length, 'each once');
    const numbers = new Set(all.map((id) => Number(/\d+/.exec(id)?.[0])));
    const missing = Array.from({ length: 48 }, (_, at) => at + 1).filter((id) => !numbers.has(id));
    t.same(missing, GONE);
  },
);

t.test('figures are compared unrounded, and rounded only in the table', async (t) => {
  const figureText = (amount: number, most: number): string => {
    const figures = { it: within(amount, most) };
    const done = { id: 'F2', title: 'a', criterion: 'b', failed: false, figures };
    const [, , row = ''] = tableOf({}, [done], new Map()).split('\n');
    return row.split(' | ').slice(3).join(' ').replace(' |', '');
  };
  t.equal(figureText(2_004, 2_000), 'it 2004 ms (≤ 2000) missed');
  t.equal(figureText(2_000.3, 2_000), 'it 2000.3 ms (≤ 2000) missed');
  t.equal(figureText(1_999.9, 2_000), 'it 2000 ms (≤ 2000) held');
  t.equal(figureText(90.4567, 52.9821660000016), 'it 90.5 ms (≤ 53) missed');
  t.equal(figureText(52.99, 52.9821660000016), 'it 52.99 ms (≤ 52.98) missed');
  t.equal(figureText(10_523.4, 11_000), 'it 10523 ms (≤ 11000) held');
  t.equal(figureText(0.12345, 0), 'it 0.123 ms (≤ 0) missed');
  t.equal(figureText(-3.21987, 1), 'it -3.22 ms (≤ 1) held');
  t.equal(figureText(Number.NaN, 1), 'it not measured (≤ 1) missed');
});

t.test('the test runner does not load tap, which would end it as a test after 30 s', async (t) => {
  const printTapImports = `import { registerHooks } from 'node:module';
  registerHooks({
    resolve(name, context, next) {
      if (name === 'tap') console.log(name);
      return next(name, context);
    },
  });`;
  const loads = async (file: string): Promise<string> => {
    const url = new URL(`../support/run/${file}`, import.meta.url).href;
    return (
      await run(process.execPath, [
        '--input-type=module',
        '-e',
        `${printTapImports} await import('${url}')`,
      ])
    ).stdout;
  };
  t.equal(await loads('faults.ts'), 'tap\n', 'an import of tap is detected');
  t.equal(await loads('fault-run.ts'), '');
});

t.test('every test file that the catalogue names exists', async (t) => {
  for (const [id, { files = [], byHand, why, criterion }] of Object.entries(FAULTS)) {
    t.ok(files.length === 0 || criterion, `${id} has a criterion`);
    t.ok(files.length > 0 || ((byHand ?? 'not done') && why), `${id} has a test, or a reason`);
    t.same(
      files.filter((file) => !existsSync(`${ROOT}${file}`)),
      [],
      id,
    );
  }
});

t.test('the table shows missed bounds, failures and tests that did not run', async (t) => {
  const done = { id: 'F2', title: 'a', criterion: 'b|c', failed: false };
  const held = { ...done, figures: { sent: 1_000, longest: within(9.87654, 10) } };
  const missed = { ...done, id: 'F10', figures: { longest: within(11, 10) } };
  t.equal(verdictOf(held), 'held');
  t.equal(verdictOf(missed), 'missed');
  t.equal(verdictOf({ ...missed, failed: true }), 'FAILED');
  const elsewhere = {
    F3: { title: 'd', why: 'e' },
    F4: { title: 'f', criterion: 'g', files: ['h', 'i'], why: 'j' },
    F5: { title: 'k', criterion: 'l', files: ['m'] },
    F6: { title: 'n', criterion: 'o', files: ['h', 'p'] },
    F7: { title: 'q', criterion: 'r', files: ['h'] },
  };
  const added = [
    { id: 'F4', figures: { kills: 1_000 } },
    { id: 'F4', figures: { kills: 200 } },
    { id: 'F4', figures: { loads: 2 } },
    ...[1, 5, 3].map((files) => ({ id: 'F7', figures: { files: within(files, 2, 'files') } })),
    ...[Number.NaN, 1].map((a) => ({ id: 'F7', figures: { took: within(a, 2) } })),
  ];
  const tallies = new Map([
    ['h', { passed: 3, failed: 0 }],
    ['i', { passed: 4, failed: 0 }],
    ['m', { passed: 5, failed: 2 }],
  ]);
  const [, , ...rows] = tableOf(elsewhere, [missed, held, ...added], tallies).split('\n');
  t.same(rows, [
    '| F2 | a | b\\|c | sent 1,000; longest 9.88 ms (≤ 10) | held |',
    '| F3 | d | e |  | not done |',
    '| F4 | f | g. j | checks 7; kills 1,200; loads 2; `h`, `i` | held |',
    '| F5 | k | l | checks 7; of them failed 2; `m` | FAILED |',
    '| F6 | n | o | `h`, `p` | not run |',
    '| F7 | q | r | checks 3; files 5 files (≤ 2); took not measured (≤ 2); `h` | missed |',
    '| F10 | a | b\\|c | longest 11 ms (≤ 10) | missed |',
    '',
    'In total: 7 faults: 2 held, 2 missed a time bound, 1 failed, 0 tested by hand; ' +
      '0 requests: 0 failed, 0 of them beyond the bounds; 0 bad inputs; longest recovery 0 ms.',
    '',
  ]);
});

t.test('the totals of a run add up figures by their names', async (t) => {
  const done = { title: 'a', criterion: 'b', failed: false };
  const noted = [
    { ...done, id: 'F1', figures: { requests: 1_000, failed: within(2, 0, 'requests') } },
    { ...done, id: 'F2', figures: { requests: 10, 'recovered after': within(109.6, 2_000) } },
    { ...done, id: 'F4', figures: { failed: within(1, 1, 'requests') } },
    { id: 'F18', figures: { 'malformed requests': 27, 'pool complete after': within(7, 9) } },
  ];
  t.equal(
    sumsOf(['held', 'FAILED', 'by hand'], noted),
    'In total: 3 faults: 1 held, 0 missed a time bound, 1 failed, 1 tested by hand; ' +
      '1,010 requests: 3 failed, 2 of them beyond the bounds; 27 bad inputs; ' +
      'longest recovery 110 ms.',
  );
});

t.test('a time far beyond its bound, and a count beyond it, fails a run', async (t) => {
  const failedBy = (figures: Figures): string[] => {
    const failed: string[] = [];
    const ok = ((isSo: boolean, name: string) => isSo || failed.push(name)) as typeof t.ok;
    checkBounds({ ok }, figures);
    return failed;
  };
  const beyond = byLength(13_001, 3_001);
  t.same(failedBy({ a: within(beyond, 1_000) }), [`a: ${beyond} ms; at most 1000`]);
  t.same(failedBy({ a: within(Number.NaN, 1_000) }), ['a: NaN ms; at most 1000']);
  t.same(failedBy({ a: within(2_999, 1_000) }), [], 'the time is reported as missed');
  t.same(failedBy({ a: within(50.1, 50, 'MB') }), ['a: 50.1 MB; at most 50']);
  t.same(failedBy({ a: within(1, 0, 'answers'), b: 7 }), ['a: 1 answers; at most 0']);
});

t.test('each file runs once: alone if times are measured, otherwise beside others', async (t) => {
  const own = globSync('test/faults/**/*.test.ts', { cwd: ROOT });
  const parts = partsOf(own);
  const all = parts.flatMap(({ files }) => files);
  t.equal(new Set(all).size, all.length, 'once');
  const elsewhere = Object.values(FAULTS).flatMap(({ files = [] }) => files);
  const wanted = new Set([...own, ...elsewhere, ...BESIDE_OTHERS]);
  t.same(all.toSorted(), [...wanted].sort(), 'all of them');
  t.equal(parts[0]?.jobs, 1);
  t.notOk(parts[0]?.files.some((file) => BESIDE_OTHERS.includes(file)));
});

t.test('a run reports its duration in minutes', async (t) => {
  t.equal(tookText(80_000), 'took 1 minute');
  t.equal(tookText(37.4 * 60_000), 'took 37 minutes');
});
