import t from 'tap';
import type { TestDatabase } from '../../support/database/database.ts';
import {
  contentOf,
  describePrices,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  stateOf,
} from '../support/loading.ts';
import { isDoing, kill, killAt, killSaying, type Scene } from './killing.ts';

const ROWS = 8_000;

const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
const valuesOf = (code: string, add: number): string[] =>
  Array.from({ length: ROWS }, (_, index) => `${code},${day(index)},,${index + add},,`);

/** Published values of A, and a file that corrects them and adds as many of B. */
async function scene(
  t: Parameters<typeof loadText>[0],
): Promise<TestDatabase & Scene & { file: string }> {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'A', 'B');
  await loadText(t, database.client, 'csv', points(...valuesOf('A', 0)));
  const file = await fileOf(t, points(...valuesOf('A', 1), ...valuesOf('B', 5)));
  return { ...database, file, args: ['load', file] };
}

t.test('a loader that is killed at any moment leaves nothing, and can run again', async (t) => {
  const world = await scene(t);
  const before = await stateOf(world.pool);
  const early = { 'before it connects': /started/, 'after the first rows': /^[1-9]\d* rows/ };
  for (const [what, text] of Object.entries(early)) {
    await killSaying(world, text);
    t.equal(await stateOf(world.pool), before, `killed ${what}`);
  }
  const locks = {
    'while it waits for another writer': 'select lock_revisions()',
    'while it looks up the prices': 'lock table price in access exclusive mode',
    'while it compares with the current values': 'lock table series in access exclusive mode',
    'while it takes its revision': 'lock table revision in share mode',
    'while it inserts': 'lock table series in share mode',
    'while it corrects': `select from series where date = '1901-01-01' for update`,
    'while it keeps what it corrected': 'lock table series_history in share mode',
    'while it writes the ledger': 'lock table load_batch in share mode',
    'before it commits': 'lock table service in access exclusive mode',
  };
  for (const [what, lock] of Object.entries(locks)) {
    await killAt(world, lock);
    t.equal(await stateOf(world.pool), before, `killed ${what}`);
  }
  const report = await loadFile(world.client, 'csv', world.file, {
    allowCorrections: true,
    reason: 'again',
  });
  t.match(report, { status: 'applied', counts: { inserted: ROWS, corrected: ROWS } });
});

t.test('a loader that is killed around its commit has done all or nothing', async (t) => {
  const world = await scene(t);
  const { pool } = world;
  const before = await contentOf(pool);
  const twin = await scene(t);
  await loadFile(twin.client, 'csv', twin.file, { allowCorrections: true, reason: 'whole' });
  const after = await contentOf(twin.pool);
  t.not(before, after);
  for (const statement of ['insert into load_coverage', 'select "epoch"', 'commit', 'drop table']) {
    let isOver = false;
    await kill(world, async (child) => {
      child.on('exit', () => {
        isOver = true;
      });
      while (!isOver && !(await isDoing(pool, statement)));
    });
    const content = await contentOf(pool);
    t.ok(content === before || content === after, `killed at ${statement}`);
    const { rows } = await pool.query(`select count(*) from load_batch where actor = 'killed'`);
    t.equal(rows[0].count, content === after ? '1' : '0', 'the ledger says the same');
    if (content === after) break;
  }
  const again = await loadFile(world.client, 'csv', world.file, {
    allowCorrections: true,
    reason: 'again',
  });
  t.ok(['applied', 'already-loaded'].includes(again.status));
  t.equal(await contentOf(pool), after, 'running it again leads to the same data');
});
