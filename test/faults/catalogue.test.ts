import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { tableOf, verdictOf } from '../support/fault-table.ts';
import { within } from '../support/faults.ts';
import { FAULTS } from './catalogue.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

/** Faults that run, however their tests are declared. */
const declared = globSync('test/faults/*.test.ts', { cwd: ROOT, exclude: ['**/catalogue*'] })
  .flatMap((path) => [...read(path).matchAll(/'(F\d+[a-z]?)',/g)])
  .map(([, id = '']) => id);

t.test('each fault of the catalogue is done once, or said where else it is', async (t) => {
  const all = [...declared, ...Object.keys(FAULTS)];
  t.equal(new Set(all).size, all.length, 'each once');
  const numbers = new Set(all.map((id) => Number(/\d+/.exec(id)?.[0])));
  const missing = Array.from({ length: 48 }, (_, at) => at + 1).filter((id) => !numbers.has(id));
  t.same(missing, []);
});

t.test('a test that is named for a fault is there', async (t) => {
  for (const [id, { files = [], byHand, why }] of Object.entries(FAULTS)) {
    t.ok(files.length > 0 || ((byHand ?? 'not done') && why), `${id} has a test, or a reason`);
    t.same(
      files.filter((file) => !existsSync(`${ROOT}${file}`)),
      [],
      id,
    );
  }
});

t.test('the table tells what was missed, and what failed', async (t) => {
  const done = { id: 'F2', title: 'a', criterion: 'b|c', failed: false };
  const held = { ...done, figures: { sent: 1_000, longest: within(9.87654, 10) } };
  const missed = { ...done, id: 'F10', figures: { longest: within(11, 10) } };
  t.equal(verdictOf(held), 'held');
  t.equal(verdictOf(missed), 'missed');
  t.equal(verdictOf({ ...missed, failed: true }), 'FAILED');
  const [, , ...rows] = tableOf({ F3: { title: 'd', why: 'e' } }, [missed, held]).split('\n');
  t.same(rows, [
    '| F2 | a | b\\|c | sent 1,000; longest 9.88 ms (≤ 10) | held |',
    '| F3 | d | e |  | not done |',
    '| F10 | a | b\\|c | longest 11 ms (≤ 10) | missed |',
    '',
  ]);
});
