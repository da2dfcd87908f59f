import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { selectionOf } from '../../../src/cli/load/withdraw.ts';
import { type BatchChange, showBatch } from '../../../src/ingest/ledger/history.ts';
import { withdraw } from '../../../src/ingest/ledger/withdraw.ts';
import { readLog, UnknownBatchError } from '../../../src/ingest/load/batches.ts';
import { UsageError } from '../../../src/std/base-errors.ts';
import type { TestDatabase } from '../../support/database/database.ts';
import { dataFolder, prices } from '../../support/process/programs.ts';
import {
  CORRECTING,
  describePrices,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  points,
} from '../support/loading.ts';

/** Six batches: a description, values, corrections, a refusal, a withdrawal, rates. */
async function ledger(t: Parameters<typeof loadText>[0]): Promise<TestDatabase> {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', points('A,2026-01-01,1,2,3,', 'B,2026-01-08,,7,,'));
  const mend = 'code,date,mid,name,region\nA,2026-01-01,2.5,Better,Europe\nB,2026-01-15,8,,\n';
  await loadText(t, client, 'csv', mend, { ...CORRECTING, vintage: '2026-02-01' });
  await loadText(t, client, 'csv', points('A,2026-01-01,,9,,'));
  const selection = { code: 'B', dates: ['2026-01-08'] };
  await withdraw(client, { selection, actor: 'tester', reason: 'no trade' });
  await loadFile(client, 'ecb', fixture('ecb-hist.csv'));
  return database;
}

t.test('the log lists every batch, the newest first, with all that the ledger has', async (t) => {
  const { db } = await ledger(t);
  const all = await readLog(db, { limit: 20, market: null });
  t.strictSame(
    all.map(({ batch, format, status }) => [batch, format, status]),
    [
      [6, 'ecb', 'applied'],
      [5, 'withdraw', 'applied'],
      [4, 'csv', 'refused'],
      [3, 'csv', 'applied'],
      [2, 'csv', 'applied'],
      [1, 'ndjson', 'applied'],
    ],
  );
  t.match(all[3], {
    file: 'file',
    sha256: /^[0-9a-f]{64}$/,
    vintage: '2026-02-01',
    startedAt: /^\d{4}-\d\d-\d\dT.*Z$/,
    revision: /^[0-9a-z]+\.4$/,
    reason: CORRECTING.reason,
    ...{ rows: 2, inserted: 1, corrected: 1, pricesChanged: 1, undoes: null, undoneBy: null },
  });
  t.match(all[2], { revision: null, rejected: 1 });
  const few = await readLog(db, { limit: 2, market: 'aluminium' });
  t.strictSame(
    few.map(({ batch }) => batch),
    [5, 3],
  );
});

t.test('a batch is shown with every change of it, whatever came later', async (t) => {
  const { client } = await ledger(t);
  const changes = async (number: number): Promise<BatchChange[]> => {
    const found: BatchChange[] = [];
    await showBatch(client, number, async (batch, all) => {
      t.equal(batch.batch, number);
      for await (const each of all) found.push(each);
    });
    return found;
  };
  const point = (low: string | null, mid: string, high: string | null) => ({ low, mid, high });
  const value = (
    operation: string,
    code: string,
    date: string,
    before: unknown,
    after: unknown,
  ) => ({
    ...{ operation, code, of: null, date, before, after },
  });
  const added = { operation: 'price-added', of: null, date: null, before: null };
  t.strictSame(await changes(1), [
    { ...added, code: 'A', after: { name: 'Price A' } },
    { ...added, code: 'B', after: { name: 'Price B' } },
  ]);
  t.strictSame(await changes(2), [
    value('published', 'A', '2026-01-01', null, point('1', '2', '3')),
    value('published', 'B', '2026-01-08', null, point(null, '7', null)),
  ]);
  t.strictSame(await changes(3), [
    {
      ...{ operation: 'price-changed', code: 'A', of: null, date: null },
      before: { name: 'Price A', region: 'Global' },
      after: { name: 'Better', region: 'Europe' },
    },
    value('corrected', 'A', '2026-01-01', point('1', '2', '3'), point(null, '2.5', null)),
    value('published', 'B', '2026-01-15', null, point(null, '8', null)),
  ]);
  t.strictSame(await changes(4), []);
  t.strictSame(await changes(5), [
    value('withdrawn', 'B', '2026-01-08', point(null, '7', null), null),
  ]);
  const rates = await changes(6);
  t.ok(rates.length > 3);
  t.match(
    rates.filter(({ operation }) => operation === 'name-added').map(({ of }) => of),
    /currency|^$/,
  );
  t.match(rates.at(-1), { operation: 'published', of: 'ECB', before: null, after: { low: null } });
  await t.rejects(changes(99), UnknownBatchError);
});

t.test('the commands print it as text and as JSON', async (t) => {
  const { url: DATABASE_URL } = await ledger(t);
  const run = (...args: string[]) => prices(t, { DATABASE_URL }, ...args);
  const listed = await run('load', 'log', '--limit', '3');
  t.equal(listed.code, 0);
  const lines = listed.stdout.split('\n');
  const batches = [
    /^BATCH /,
    /^ +6 .* ecb /,
    /^ +5 .* 1 withdrawn .*no trade$/,
    /^ +4 .* refused /,
  ];
  t.match(lines.slice(0, 4), batches);
  t.match(lines.slice(4), ['', 'Older ones are not shown; a greater --limit shows more.', '']);
  const [newest] = JSON.parse((await run('load', 'log', '--json')).stdout);
  t.match(newest, { batch: 6, format: 'ecb' });
  const shown = await run('load', 'show', '3');
  t.match(shown.stdout, /^batch +3\n[\s\S]*\n\nprice-changed A: \{"name":"Price A"/);
  t.match(shown.stdout, /^finishedAt +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m);
  t.match(lines[1], / \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ /);
  t.match(shown.stdout, '\ncorrected     A 2026-01-01: 1 / 2 / 3 → 2.5\n');
  const whole = JSON.parse((await run('load', 'show', '3', '--json')).stdout);
  t.match(whole, { batch: { batch: 3 }, changes: { length: 3 } });
  t.match((await run('load', 'show', '4')).stdout, /\nIt changed nothing\.\n$/);
  const missing = await run('load', 'show', '99');
  t.match(missing, { code: 2, stderr: 'there is no batch 99; load log lists them' });
  t.match(await run('load', 'show', 'x'), { code: 2, stderr: /a whole number/ });
  t.match(await run('load', 'log', '--market', 'nikel'), { code: 2, stderr: /mean nickel\?/ });
});

t.test('a withdrawal names points in one way', async (t) => {
  const [from, to, file] = ['2026-01-01', '2026-02-01', 'x.csv'];
  const reason = 'mistake';
  const fine: [string | undefined, object, object][] = [
    ['A', { all: true }, { code: 'A', from: null, to: null }],
    ['A', { from }, { code: 'A', from, to: null }],
    ['A', { from, to }, { code: 'A', from, to }],
    ['A', { date: [from, to] }, { code: 'A', dates: [from, to] }],
    [undefined, { file }, { file }],
  ];
  for (const [code, options, selection] of fine) {
    t.strictSame(selectionOf(code, { ...options, reason }), selection);
  }
  const wrong: [string | undefined, object][] = [
    ['A', {}],
    [undefined, { date: [from] }],
    ['A', { all: true, from }],
    ['A', { file }],
    ['A', { from: '2026-1-1' }],
    ['A', { to: '2026-02-30' }],
    ['A', { from: to, to: from }],
  ];
  for (const [code, options] of wrong) {
    t.throws(() => selectionOf(code, { ...options, reason }), UsageError);
  }
});

t.test('withdraw says what it takes, and refuses what is not there', async (t) => {
  const { url: DATABASE_URL } = await ledger(t);
  const run = (...args: string[]) => prices(t, { DATABASE_URL }, 'withdraw', ...args);
  const reason = ['--reason', 'mistake'];
  t.match(await run('A', '--all', '--dry-run', ...reason), {
    code: 0,
    stdout: 'Withdrawn: 1\n  A 2026-01-01: 2.5\nA dry run; nothing was changed.\n',
  });
  t.match(await run('A', '--all', '--reason', ' '), { code: 2, stderr: /--reason/ });
  const missing = await run('A', '--date', '2026-01-01', '2026-01-02', ...reason);
  t.match(missing, { code: 3, stdout: 'Refused; nothing was changed.\n' });
  t.match(missing.stderr, /\ndate "2026-01-02": A has no value on 2026-01-02 \(no_value\)\n$/);
  const file = join(await dataFolder(t), '..', 'points.csv');
  await writeFile(file, 'code,date\nA,2026-01-01\nB,2026-01-15\n');
  const done = await run('--file', file, '--json', ...reason);
  t.equal(done.code, 0);
  t.match(JSON.parse(done.stdout), { status: 'applied', batch: 7, points: { total: 2 } });
});
