import t from 'tap';
import { undo } from '../../src/ingest/ledger/undo.ts';
import { RULES } from '../../src/verify/verify.ts';
import { testDatabase } from '../support/database/database.ts';
import { writeMinimalData } from '../support/database/minimal-data.ts';
import { publisherOn } from '../support/prices/random-commits.ts';
import { findings, storedWorld } from './support.ts';

t.test('nothing is found after batches were undone, and the undos too', async (t) => {
  const { client, pool } = await storedWorld(t);
  const batches = async () =>
    (
      await pool.query(`select id from load_batch where status = 'applied' and undone_by is null
      and format <> 'undo' and revision is not null order by id desc`)
    ).rows;
  const undoOne = (batch: number) => undo(client, { batch, actor: 'tester', reason: 'a test' });
  const undone: number[] = [];
  for (const { id } of await batches()) {
    const report = await undoOne(id).catch((error) => error);
    if (report.batch) undone.push(report.batch);
    t.strictSame(await findings(client), [], `batch ${id} was undone`);
  }
  t.ok(undone.length >= 6, `${undone.length} were`);
  for (const id of undone.toReversed()) await undoOne(id);
  t.strictSame(await findings(client), [], 'the undos were undone');
  for (const { id } of await batches()) await undoOne(id).catch(() => {});
  t.strictSame(await findings(client), [], 'and the batches again');
});

t.test('nothing is found after random commits of every kind', async (t) => {
  const { client, pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const { transact } = await publisherOn(pool, 20_261_122);
  for (let round = 0; round < 60; round += 1) await transact();
  // The model counts no corrections: a withdrawal and publication in one revision is new.
  const rules = RULES.filter(({ name }) => name !== 'corrections-counted');
  t.strictSame(await findings(client, rules), []);
});
