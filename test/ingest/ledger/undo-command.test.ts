import t from 'tap';
import { contentHash } from '../../../src/db/content-hash.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { roledDatabase } from '../../support/database/roles.ts';
import { prices } from '../../support/process/programs.ts';
import {
  CORRECTING,
  describePrices,
  fixture,
  loadFile,
  loadingDatabase,
  loadText,
  points,
} from '../support/loading.ts';
import { NAMES, priceOf, undoBatch } from './undo-support.ts';

t.test('the account of the loader may undo, and remove prices in no other way', async (t) => {
  const database = await roledDatabase(t);
  await seed(database.client, { reference: true });
  const client = database.as('loader');
  const before = await contentHash(client);
  const batches = [
    await loadText(t, client, 'ndjson', NAMES + priceOf('XX-1')),
    await loadText(t, client, 'csv', points('XX-1,2026-01-01,,1,,')),
    await loadFile(client, 'ecb', fixture('ecb-hist.csv')),
  ];
  for (const { batch } of batches.toReversed()) await undoBatch(client, batch);
  t.same(await contentHash(client), before);
  const loaded = await loadText(t, client, 'ndjson', NAMES + priceOf('XX-4'));
  await loadText(t, client, 'csv', points('XX-4,2026-01-01,,1,,'));
  const line = (undoes: number, revision: string) => `insert into load_batch
      (format, file_name, sha256, actor, status, started_at, finished_at, revision, rows, undoes)
    values ('undo', 'forged', sha256(''), 'x', 'applied', now(), now(), ${revision}, 0, ${undoes})`;
  const forged = [
    line(loaded.batch ?? 0, '1'),
    line(1, 'null'),
    `begin; select open_revision('forged'); ${line(loaded.batch ?? 0, 'current_revision()')}`,
    'delete from price',
    'update load_batch set undone_by = 1',
    'select take_back()',
  ];
  const failures = [/in its own revision/, /not in force/, /has points/];
  for (const [index, statement] of forged.entries()) {
    const failure = failures[index] ?? /permission denied/;
    await t.rejects(client.pool.query(statement), failure, statement);
    await client.pool.query('rollback');
  }
});

t.test('the command prints what it undoes, and the conflicts', async (t) => {
  const { client, url: DATABASE_URL } = await loadingDatabase(t);
  await describePrices(client, 'A');
  await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  await loadText(t, client, 'csv', points('A,2026-01-01,,1.5,,'), CORRECTING);
  const run = (batch: string, ...args: string[]) =>
    prices(t, { DATABASE_URL }, 'load', 'undo', batch, '--reason', 'draft', ...args);
  const refused = await run('2');
  t.match(refused, {
    code: 3,
    stdout: '',
    stderr: /later changes depend on .* batch 3 \(csv file\)/,
  });
  const asJson = await run('2', '--json');
  t.equal(asJson.code, 3);
  t.match(JSON.parse(asJson.stdout), { status: 'refused', conflicts: [{ batch: 3 }] });
  t.match(await run('99'), { code: 2, stderr: /there is no batch 99/ });
  t.match(await run('3', '--dry-run'), {
    code: 0,
    stdout: 'Values as before: 1\n  A 2026-01-01: 1.5 → 1\nA dry run; nothing was changed.\n',
  });
  t.match(await run('3'), {
    code: 0,
    stdout: /Batch 3 is undone \(batch 4, revision \w+\.5\)\.\n$/,
  });
  const listed = await prices(t, { DATABASE_URL }, 'load', 'log', '--limit', '2');
  t.match(listed.stdout, /\n +4 .* undo +3 \(csv file\) .* undoes 3 .*\n +3 .* undone by 4 /);
});

t.test('a person sees every change of an undo and of a withdrawal before it is made', async (t) => {
  const { client, url: DATABASE_URL } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const days = Array.from({ length: 1_200 }, (_, at) =>
    new Date(Date.UTC(2020, 0, 1 + at)).toISOString().slice(0, 10),
  );
  const of = (mid: string): string => points(...days.map((day) => `A,${day},,${mid},,`));
  await loadText(t, client, 'csv', of('10'));
  const { batch } = await loadText(t, client, 'csv', of('11'), CORRECTING);
  const run = (...args: string[]) =>
    prices(t, { DATABASE_URL }, ...args, '--reason', 'draft', '--dry-run');
  const undo = ['load', 'undo', String(batch)];
  const count = (text: string, line: RegExp) => text.match(line)?.length ?? 0;
  const first = await run(...undo);
  t.equal(count(first.stdout, / 11 → 10$/gm), 10);
  t.match(first.stdout, '  and 1,190 more; --all shows them\n');
  t.equal(count((await run(...undo, '--all')).stdout, / 11 → 10$/gm), 1_200);
  const { preview } = JSON.parse((await run(...undo, '--all', '--json')).stdout);
  t.equal(preview.corrected.shown.length, 1_200);
  t.equal(count((await run('withdraw', 'A', '--all')).stdout, /^ {2}A .* 11$/gm), 1_200);
});
