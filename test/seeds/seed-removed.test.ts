import t from 'tap';
import { contentHash } from '../../src/db/content-hash.ts';
import { seed } from '../../src/db/seed/seed.ts';
import { undoSamples } from '../../src/ingest/ledger/samples.ts';
import { undo } from '../../src/ingest/ledger/undo.ts';
import { fixture, loadFile, loadText } from '../ingest/support/loading.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';
import { prices } from '../support/process/programs.ts';

const REQUEST = { actor: 'tester', reason: 'real prices follow' };
const SAMPLE = 'CP-NI-0001';

async function countsOf({ pool }: TestDatabase): Promise<Record<string, number>> {
  const { rows } = await pool.query(`select
    (select count(*)::int from price) as prices, (select count(*)::int from series) as points,
    (select count(*)::int from fx_rate where source = 'SAMPLE') as samples,
    (select count(*)::int from fx_rate where source <> 'SAMPLE') as rates,
    (select count(*)::int from product) as products`);
  return rows[0];
}

interface Change {
  readonly operation: string;
  readonly code: string;
  readonly date: string | null;
}

/** All changes of nickel after a position of the feed, and the position after them. */
async function feedOf({ request }: Service, after: string | null) {
  const changes: Change[] = [];
  let position = after;
  for (;;) {
    const from = position === null ? '' : `&after=${position}`;
    const url = `/v3/changes?market=nickel&limit=5000${from}`;
    const { json } = await request({ method: 'GET', url });
    changes.push(...json.data);
    position = json.$metadata.nextSeq;
    if (json.data.length === 0) return { changes, position };
  }
}

t.test('one command removes the samples and nothing else, and the past keeps them', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { client, pool } = database;
  await commit(pool, async (each) => {
    await addPrice(each, { code: 'OWN-1', currency: 'USD', unit: 'tonne' });
    await putPoints(each, 'OWN-1', ['2026-06-30', null, '100', null]);
  });
  await loadFile(client, 'ecb', fixture('ecb-hist.csv'));
  const service = await serviceOn(t, database);
  const { post } = service;
  const { position } = await feedOf(service, null);
  const before = await post('nickel', {});
  const counts = await countsOf(database);
  const hash = await contentHash(client);

  const previewed = await undoSamples(client, { ...REQUEST, dryRun: true });
  t.match(previewed, [
    { status: 'previewed', undoes: 2 },
    { status: 'previewed', undoes: 1 },
  ]);
  const { removedPrices, withdrawn } = previewed[1]?.preview ?? {};
  const { prices: all = 0, points = 0, samples = 0 } = counts;
  t.equal(removedPrices?.total, all - 1);
  t.equal(withdrawn?.total, points - 1 + samples);
  t.same(await countsOf(database), counts, 'a dry run changes nothing');

  const undone = await undoSamples(client, REQUEST);
  t.match(undone, [{ undoes: 2 }, { undoes: 1 }]);
  const { rates, products } = counts;
  t.same(await countsOf(database), { prices: 1, points: 1, samples: 0, rates, products });
  t.match((await post('nickel', {})).json.data, { length: 1, 0: { code: 'OWN-1' } });
  const { revision } = before.json.$metadata;
  const past = await post('nickel', { options: { revision } });
  t.same(past.json.data, before.json.data, 'a past revision still has the samples');
  const told = (await feedOf(service, position)).changes;
  t.same(
    told.filter(({ date, operation }) => date === null && operation === 'withdrawn').length,
    before.json.data.length - 1,
    'the feed has each removed price',
  );
  const own = told.filter(({ code }) => code === SAMPLE);
  t.ok(own.length > 500 && own.some(({ date }) => date === '2026-06-30'), 'and its points');
  t.same(await seed(client), {
    reference: { inserted: 0 },
    sample: { prices: 0, points: 0, rates: 0, corrected: 0 },
  });
  t.equal((await countsOf(database))['prices'], 1, 'a later seed does not restore them');
  await t.rejects(undoSamples(client, REQUEST), /no batch of samples is in force/);
  t.match(await prices(t, { DATABASE_URL: database.url }, 'db', 'verify'), { code: 0 });
  for (const { batch } of undone.toReversed()) {
    await undo(client, { ...REQUEST, batch: batch ?? 0 });
  }
  t.same(await contentHash(client), hash, 'an undo of the undos restores them');
});

t.test('it is refused, and changes nothing, while later batches depend on a sample', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  const { client, url: DATABASE_URL } = database;
  const run = (...args: string[]) =>
    prices(t, { DATABASE_URL }, 'load', 'undo', '--reason', 'real prices follow', ...args);
  await loadText(t, client, 'csv', `code,date,mid\n${SAMPLE},2026-07-01,15000\n`);
  const counts = await countsOf(database);
  for (const more of [[], ['--dry-run']]) {
    const refused = await run('--samples', ...more);
    t.match(refused, { code: 3, stderr: /later changes depend on batch 1: batch 3 \(csv / });
  }
  t.same(await countsOf(database), counts);
  t.match(await run(), { code: 2, stderr: /number of a batch, or take --samples/ });
  t.match(await run('3', '--samples'), { code: 2 });
  t.match(await run('3'), { code: 0 });
  const dry = await run('--samples', '--dry-run');
  t.match(dry, { code: 0, stdout: /Prices removed: \d+\n[\s\S]*A dry run; nothing was changed/ });
  t.equal(dry.stdout.match(/A dry run/g)?.length, 1, 'once, for both batches');
  const applied = JSON.parse((await run('--samples', '--json')).stdout);
  t.match(applied.undone, [
    { status: 'applied', undoes: 2 },
    { status: 'applied', undoes: 1 },
  ]);
  t.match(await run('--samples'), { code: 3, stderr: /no batch of samples is in force/ });
  const { points, samples } = await countsOf(database);
  t.same([points, samples], [0, 0]);
});
