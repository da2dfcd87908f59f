import t from 'tap';
import { undo } from '../../../src/ingest/ledger/undo.ts';
import { withdraw } from '../../../src/ingest/ledger/withdraw.ts';
import type { TestDatabase } from '../../support/database/database.ts';
import { isDoing, kill, killAt, type Scene } from '../killed/killing.ts';
import {
  CORRECTING,
  contentOf,
  loadingDatabase,
  loadText,
  points,
  stateOf,
} from '../support/loading.ts';
import { NAMES, priceOf } from './undo-support.ts';

const ROWS = 2_000;
const REQUEST = { actor: 'tester', reason: 'whole' };

const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
const line = (code: string, index: number, mid: number): string =>
  `${code},${day(index)},,${mid},,`;

/**
 * Values of A, and batch 4, which corrected all of them, added as many, and added a price with new
 * names.
 */
async function scene(t: Parameters<typeof loadText>[0]): Promise<TestDatabase> {
  const database = await loadingDatabase(t);
  const { client } = database;
  await loadText(t, client, 'ndjson', NAMES + priceOf('A'));
  const published = Array.from({ length: ROWS }, (_, index) => line('A', index, index + 1));
  await loadText(t, client, 'csv', points(...published));
  await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  const more = Array.from({ length: 2 * ROWS }, (_, index) =>
    JSON.stringify({ code: index < ROWS ? 'A' : 'B', date: day(index % ROWS), mid: index + 2 }),
  );
  await loadText(t, client, 'ndjson', `${priceOf('B')}${more.join('\n')}\n`, CORRECTING);
  return database;
}

const COMMANDS = {
  undo: {
    args: ['undo', '4'],
    whole: ({ client }: TestDatabase) => undo(client, { batch: 4, ...REQUEST }),
    locks: {
      'while it waits for another writer': 'select lock_revisions()',
      'while it looks at the values': 'lock table series in access exclusive mode',
      'while it takes its revision': 'lock table revision in share mode',
      'while it withdraws': `select from series where date = '1900-02-01' for update`,
      'while it restores': `select from series s join price p on p.id = s.price_id
        where p.code = 'A' and date = '1901-01-01' for update`,
      'while it keeps what it replaces': 'lock table series_history in share mode',
      'while it writes the ledger': 'lock table load_batch in share mode',
      'while it removes the price': `select from price where code = 'B' for update`,
    },
    moments: ['delete from series', 'update series', 'insert into load_batch', 'commit'],
  },
  withdraw: {
    args: ['withdraw', 'A'],
    whole: ({ client }: TestDatabase) =>
      withdraw(client, { selection: { code: 'A', from: null, to: null }, ...REQUEST }),
    locks: {
      'while it waits for another writer': 'select lock_revisions()',
      'while it names the points': 'lock table series in access exclusive mode',
      'while it withdraws': `select from series where date = '1900-02-01' for update`,
      'while it keeps what it withdrew': 'lock table series_history in share mode',
      'while it writes the ledger': 'lock table load_batch in share mode',
    },
    moments: ['delete from series', 'insert into load_batch', 'commit'],
  },
} as const;

for (const [name, { args, whole, locks, moments }] of Object.entries(COMMANDS)) {
  t.test(`a process that is killed in ${name} has done all or nothing`, async (t) => {
    const database = await scene(t);
    const { pool } = database;
    const twin = await scene(t);
    await whole(twin);
    const [before, after] = [await contentOf(pool), await contentOf(twin.pool)];
    t.not(before, after);
    const world: Scene = { ...database, args };
    const untouched = await stateOf(pool);
    for (const [what, lock] of Object.entries(locks)) {
      await killAt(world, lock);
      t.equal(await stateOf(pool), untouched, `killed ${what}`);
    }
    for (const statement of moments) {
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
      if (content === after) return;
    }
    await whole(database);
    t.equal(await contentOf(pool), after, 'doing it again leads to the same data');
  });
}
