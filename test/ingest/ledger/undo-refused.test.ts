import t from 'tap';
import { withdraw } from '../../../src/ingest/ledger/withdraw.ts';
import { readBatch, UnknownBatchError } from '../../../src/ingest/load/batches.ts';
import { prices } from '../../support/process/programs.ts';
import {
  CORRECTING,
  describePrices,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
  stateOf,
} from '../support/loading.ts';
import { conflictsOf, NAMES, priceOf, undoBatch } from './undo-support.ts';

t.test('a batch on which later ones stand is refused, and they are named', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const first = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,', 'A,2026-01-08,,2,,'));
  const other = await loadText(t, client, 'csv', points('A,2026-01-15,,3,,', 'B,2026-01-01,,1,,'));
  const second = await loadText(t, client, 'csv', points('A,2026-01-08,,2.5,,'), CORRECTING);
  const selection = { code: 'A', dates: ['2026-01-01'] };
  const third = await withdraw(client, { selection, actor: 'tester', reason: 'no trade' });
  const before = await stateOf(pool);
  t.strictSame(await conflictsOf(client, first.batch), [third.batch, second.batch]);
  t.strictSame(await conflictsOf(client, 1), [third.batch, second.batch, other.batch, first.batch]);
  await t.rejects(undoBatch(client, first.batch), {
    message:
      'later changes depend on batch 2: batch 5 (withdraw A 2026-01-01), ' +
      'batch 4 (csv file); undo them first, newest first',
  });
  t.equal(await stateOf(pool), before, 'nothing was changed');
  await undoBatch(client, other.batch);
  await undoBatch(client, third.batch);
  t.strictSame(await conflictsOf(client, first.batch), [second.batch]);
  await undoBatch(client, second.batch);
  t.match(await seriesOf(pool, 'A'), [
    ['2026-01-01', null, '1', null, 0],
    ['2026-01-08', null, '2', null, 2],
  ]);
  await undoBatch(client, first.batch);
  t.strictSame(await seriesOf(pool, 'A'), []);
  await undoBatch(client, 1);
  const { rows } = await pool.query('select code from price');
  t.strictSame(rows, []);
});

t.test('a change by hand stands in the way as well', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const { batch } = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  await pool.query(`begin; select open_revision('by hand');
    update series set mid = 2, corrections = 1; commit`);
  await t.rejects(undoBatch(client, batch), { message: /revision \w+\.4 \(by hand\)/ });
});

t.test('only a batch that is in force can be undone, and each once', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const done = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  const refused = await loadText(t, client, 'csv', points('A,2026-01-01,,2,,'));
  const before = await stateOf(pool);
  await t.rejects(undoBatch(client, refused.batch), { message: /batch 3 was refused/ });
  await t.rejects(undoBatch(client, 99), UnknownBatchError);
  const rehearsed = await undoBatch(client, done.batch, true);
  t.match(rehearsed, { status: 'previewed', batch: null, preview: { withdrawn: { total: 1 } } });
  t.equal(await stateOf(pool), before, 'a dry run changes nothing');
  const undone = await undoBatch(client, done.batch);
  await t.rejects(undoBatch(client, done.batch), { message: /undone already, by batch 4/ });
  const again = await undoBatch(client, undone.batch);
  const once = await undoBatch(client, again.batch);
  t.strictSame(
    await Promise.all([2, 4, 5, 6].map(async (id) => (await readBatch(client.db, id)).undoneBy)),
    [4, null, 6, null],
    'the first load is undone again, by the undo that is in force again',
  );
  await undoBatch(client, once.batch);
  t.strictSame(await seriesOf(pool, 'A'), [['2026-01-01', null, '1', null, 0]]);
});

t.test('a batch of which every row was rejected has nothing to undo', async (t) => {
  const { client, pool, url: DATABASE_URL } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const file = await fileOf(t, points('A,2026-01-01,,x,,'));
  const rejects = { file: `${file}.rejects`, overwrite: false };
  const { batch } = await loadFile(client, 'csv', file, { rejects });
  t.match(await readBatch(client.db, 2), { batch, status: 'applied', rows: 1, rejected: 1 });
  const before = await stateOf(pool);
  const undo = ['load', 'undo', String(batch), '--reason', 'a draft'];
  t.match(await prices(t, { DATABASE_URL }, ...undo), {
    ...{ code: 3, stdout: '' },
    stderr: /batch 2 changed nothing: there is nothing to undo\n$/,
  });
  t.equal(await stateOf(pool), before);
  const values = points('A,2026-01-01,,1,,', 'A,2026-01-08,,x,,');
  await loadFile(client, 'csv', await fileOf(t, points('A,2026-01-01,,1,,')));
  const edition = await loadText(t, client, 'csv', values, {
    ...{ rejects: { ...rejects, overwrite: true }, vintage: '2026-02-01' },
  });
  t.match(edition, { status: 'unchanged' });
  await t.resolves(undoBatch(client, edition.batch), 'but an edition keeps older ones out');
});

t.test('an undone file may be loaded again, and then its undo stays', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const file = await fileOf(t, points('A,2026-01-01,,1,,'));
  const first = await loadFile(client, 'csv', file);
  t.match(await loadFile(client, 'csv', file), { status: 'already-loaded', batch: first.batch });
  const undone = await undoBatch(client, first.batch);
  const second = await loadFile(client, 'csv', file);
  t.match(second, { status: 'applied', counts: { inserted: 1 } });
  t.strictSame(await conflictsOf(client, undone.batch), [second.batch]);
  // Also if neither load changed the data.
  const same = await fileOf(t, points('A,2026-01-01,,1.0,,'));
  const third = await loadFile(client, 'csv', same);
  t.match(third, { status: 'unchanged', revision: null });
  const { batch, revision } = await undoBatch(client, third.batch);
  t.equal(revision, null);
  const fourth = await loadFile(client, 'csv', same);
  t.strictSame(await conflictsOf(client, batch), [fourth.batch]);
});

t.test('the edition of an undone batch protects nothing', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const at = (vintage: string) => ({ ...CORRECTING, vintage });
  const newer = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'), at('2026-03-01'));
  const confirmed = await loadText(
    t,
    client,
    'csv',
    points('A,2026-01-01,,1.0,,'),
    at('2026-04-01'),
  );
  const older = () => loadText(t, client, 'csv', points('A,2026-01-01,,2,,'), at('2026-02-01'));
  t.match(await older(), { counts: { outdated: 1 } });
  await undoBatch(client, 4);
  await undoBatch(client, confirmed.batch);
  t.match(await older(), { counts: { outdated: 1 } });
  await undoBatch(client, 7);
  await undoBatch(client, newer.batch);
  t.match(await older(), { counts: { inserted: 1 } });
});

t.test('names go with their batch unless something else uses them, and come back', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const names = async () => {
    const { rows } = await pool.query(`select name from product where name = 'Dust'
      union all select name from dimension_value where name = '99.9999% Ni'`);
    return rows.map((row) => row.name);
  };
  const both = ['Dust', '99.9999% Ni'];
  const first = await loadText(t, client, 'ndjson', NAMES + priceOf('XX-1'));
  const second = await loadText(t, client, 'ndjson', priceOf('XX-2'));
  const undone = await undoBatch(client, first.batch);
  t.strictSame(undone.preview.removedNames, { total: 0, shown: [] });
  t.strictSame(await names(), both, 'the second price uses them');
  await undoBatch(client, undone.batch);
  const withoutSecond = await undoBatch(client, second.batch);
  const last = await undoBatch(client, first.batch);
  t.equal(last.preview.removedNames.total, 2);
  t.strictSame(await names(), []);
  t.strictSame(
    await conflictsOf(client, withoutSecond.batch),
    [last.batch],
    'a price cannot come back before what it refers to',
  );
  const anew = await loadText(t, client, 'ndjson', NAMES + priceOf('XX-3'));
  t.strictSame(await conflictsOf(client, last.batch), [anew.batch], 'the names were taken again');
  await undoBatch(client, anew.batch);
  await undoBatch(client, last.batch);
  await undoBatch(client, withoutSecond.batch);
  const { rows } = await pool.query('select code from price order by code');
  t.strictSame(rows, [{ code: 'XX-1' }, { code: 'XX-2' }]);
});

t.test('points come back only to a price that is there', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const values = await loadText(t, client, 'csv', points('A,2026-01-01,,1,,'));
  const withoutValues = await undoBatch(client, values.batch);
  const withoutPrice = await undoBatch(client, 1);
  t.strictSame(await conflictsOf(client, withoutValues.batch), [withoutPrice.batch]);
  await describePrices(client, 'a');
  t.strictSame(await conflictsOf(client, withoutPrice.batch), [5], 'another price has its code');
});

t.test('an undo that another undo has overtaken is refused with its number', async (t) => {
  const { client } = await loadingDatabase(t);
  await loadText(t, client, 'ndjson', NAMES + priceOf('OVERTAKEN'));
  const { batch, status } = await loadText(t, client, 'ndjson', `${priceOf('OVERTAKEN')}\n`);
  t.equal(status, 'unchanged');
  const { batch: undone } = await undoBatch(client, batch);
  const { batch: restored } = await undoBatch(client, undone);
  const { batch: again } = await undoBatch(client, batch);
  t.same(await conflictsOf(client, restored), [again]);
  await undoBatch(client, again);
  t.match(await undoBatch(client, restored), { status: 'applied' });
});
