import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { exportArchive } from '../../src/archive/export.ts';
import { importArchive } from '../../src/archive/import.ts';
import { loadText, stateOf } from '../ingest/support/loading.ts';
import { testDatabase } from '../support/database/database.ts';
import {
  CURRENCY,
  failureOf,
  inRevision,
  insertOf,
  priceRow,
  valueRow,
  writeMinimalData,
} from '../support/database/minimal-data.ts';
import { keyFor, serviceOn } from '../support/http/service.ts';
import { archivePath, contentsOf, exported, imported } from './support.ts';

t.test('an export writes into no folder that holds something', async (t) => {
  const { client } = await testDatabase(t);
  const folder = await archivePath(t);
  await mkdir(folder);
  await writeFile(join(folder, 'notes.txt'), 'mine');
  const request = { folder, markets: null } as const;
  const failure = await failureOf(exportArchive(client, request));
  t.match(failure, { name: 'FolderRefusal', message: /is not empty: an export needs a folder/ });
  t.same(await readdir(folder), ['notes.txt']);
});

t.test('one of two concurrent exports into one folder is refused', async (t) => {
  const { client } = await testDatabase(t);
  const folder = await archivePath(t);
  const request = { folder, markets: null } as const;
  const outcomes = await Promise.allSettled([
    exportArchive(client, request),
    exportArchive(client, request),
  ]);
  t.same(outcomes.map((each) => each.status).sort(), ['fulfilled', 'rejected']);
  await imported(t, folder);
});

t.test('an export that fails leaves nothing behind and can be tried again', async (t) => {
  const { client, pool } = await testDatabase(t);
  await writeMinimalData(pool);
  const folder = await archivePath(t);
  const controller = new AbortController();
  const onProgress = ({ item }: { item: string }) => {
    if (item === 'price') controller.abort(new Error('enough'));
  };
  const request = { folder, markets: null } as const;
  const aborted = exportArchive(client, { ...request, onProgress, signal: controller.signal });
  t.equal((await failureOf(aborted)).message, 'enough');
  t.match(await failureOf(readdir(folder)), { code: 'ENOENT' });
  await exportArchive(client, request);
  t.ok((await readdir(folder)).includes('manifest.json'));
});

t.test('an export is one revision of the data, whatever is committed meanwhile', async (t) => {
  const { client, pool } = await testDatabase(t, { seeded: true });
  const folder = await archivePath(t);
  let isOver = false;
  const exporting = exportArchive(client, { folder, markets: null }).finally(() => {
    isOver = true;
  });
  let newest = 0;
  for (let value = 1; !isOver; value += 1) {
    newest = await inRevision(
      pool,
      `update series set mid = ${value}, low = null, high = null
        where price_id = (select id from price where code = 'CP-NI-0001') and date > '2026-06-01'`,
      `update price set short_name = 'Name ${value}' where code = 'CP-NI-0001'`,
      `update currency set symbol = 'Mark ${value}' where iso = 'USD'`,
    );
  }
  const { revision } = await exporting;
  t.ok(newest > Number(revision), `${newest} were committed, ${revision} were exported`);
  const copy = await imported(t, folder);
  for (const table of ['series', 'price', 'currency']) {
    // By name, since a column that is added later has another position in price_at_2().
    const row = 'to_jsonb(r)::text';
    const digest = (rows: string): string =>
      `select md5(string_agg(${row}, '' order by ${row})) as digest from ${rows} as r`;
    // Only the newest of price_at(), price_at_2() has all columns.
    const { rows: readers } = await pool.query(
      `select proname as name from pg_proc where starts_with(proname, $1)
        order by length(proname) desc, proname desc`,
      [`${table}_at`],
    );
    const was = await pool.query(digest(`${readers[0].name}(${revision})`));
    t.same((await copy.pool.query(digest(table))).rows, was.rows, table);
  }
});

t.test('a database that holds anything is not imported into', async (t) => {
  const original = await testDatabase(t);
  await writeMinimalData(original.pool);
  const folder = await exported(t, original.client);
  const target = await testDatabase(t);
  await target.pool.query(`insert into load_batch
      (format, file_name, sha256, actor, status, started_at, finished_at, rows)
    values ('csv', 'refused.csv', sha256(''), 'test', 'refused', now(), now(), 0)`);
  const before = await stateOf(target.pool);
  const importing = importArchive(target.client, { folder });
  t.match(await failureOf(importing), {
    name: 'ArchiveRefusal',
    message:
      'the database holds data (load_batch): an import needs a database without data, such as ' +
      'a new one that was migrated',
  });
  t.equal(await stateOf(target.pool), before);
  const twice = await imported(t, folder);
  const again = await failureOf(importArchive(twice.client, { folder }));
  t.match(again.message, /the database holds data \(revision, .* …\)/);
});

t.test('an import sees commits made while it waits for the lock', async (t) => {
  const original = await testDatabase(t);
  await writeMinimalData(original.pool);
  const folder = await exported(t, original.client);
  const target = await testDatabase(t);
  const writer = await target.pool.connect();
  await writer.query('begin');
  await writer.query("select open_revision('the first')");
  await writer.query(insertOf('currency', CURRENCY));
  const importing = failureOf(importArchive(target.client, { folder }));
  const isWaiting = `select from pg_stat_activity where datname = current_database()
    and wait_event = 'relation'`;
  while ((await target.pool.query(isWaiting)).rows.length === 0);
  await writer.query('commit');
  writer.release();
  const { message } = await importing;
  t.match(message, /^the database holds data \(revision, revision_scope, currency\)/);
});

t.test('loads and corrections continue after an import as in the original', async (t) => {
  const original = await testDatabase(t);
  await writeMinimalData(original.pool);
  // Ids that are history alone, and that of a batch that was refused.
  await inRevision(original.pool, insertOf('dimension_value', valueRow('region', 'asia')));
  await inRevision(original.pool, "delete from dimension_value where slug = 'asia'");
  await inRevision(original.pool, insertOf('price', priceRow('T-9')));
  await inRevision(original.pool, "delete from price where code = 'T-9'");
  await loadText(t, original.client, 'csv', 'code,date,mid\nNONE-1,2026-01-08,1\n');
  const copy = await imported(t, await exported(t, original.client));
  for (const database of [original, copy]) {
    await inRevision(
      database.pool,
      insertOf('dimension_value', valueRow('region', 'africa', { uuid: 'md5($$africa$$)::uuid' })),
      insertOf('price', priceRow('T-10')),
    );
    const points = 'code,date,mid,publishedAt\nT-10,2026-01-08,1,2026-01-08T16:00:00Z\n';
    await loadText(t, database.client, 'csv', points);
    const corrected = points.replace(',1,', ',2,');
    const permission = { allowCorrections: true, reason: 'misprint' };
    await loadText(t, database.client, 'csv', corrected, permission);
  }
  const of = async ({ client }: typeof copy) => {
    const {
      'revision.csv': _times,
      'load_batch.csv': _too,
      'manifest.json': _both,
      ...rest
    } = await contentsOf(await exported(t, client));
    return rest;
  };
  t.same(await of(copy), await of(original), 'the same ids, revisions, numbers of changes');
  t.equal(await stateOf(copy.pool), await stateOf(original.pool));
  const changed = copy.pool.query('update series set mid = 3');
  t.match(await failureOf(changed), { message: /needs a revision of its own/ }, 'rules hold again');
  const forged = copy.pool.query('delete from revision');
  t.match(await failureOf(forged), { message: /kept for ever/ });
});

t.test('a database of a newer version is neither exported nor imported into', async (t) => {
  const { client, pool } = await testDatabase(t);
  const archive = await exported(t, client);
  await pool.query("insert into kysely_migration (name, timestamp) values ('9999-later', '')");
  const folder = await archivePath(t);
  const refusal = {
    name: 'ArchiveRefusal',
    message: 'the database belongs to a newer version of the software, which ran 9999-later',
  };
  const request = { folder, markets: null } as const;
  t.match(await failureOf(exportArchive(client, request)), refusal);
  t.match(await failureOf(importArchive(client, { folder: archive })), refusal);
});

t.test('an import leaves the API keys of the database as they are', async (t) => {
  const original = await testDatabase(t);
  await writeMinimalData(original.pool);
  await keyFor(original, ['prices:*']);
  const folder = await exported(t, original.client);
  for (const file of await readdir(folder)) t.notMatch(file, /key|access_scope/);
  const target = await testDatabase(t);
  for (const scope of ['prices:nickel', 'prices:copper'] as const) await keyFor(target, [scope]);
  const ofKeys = async () => {
    const keys =
      'select public_id, digest, scope from api_key join api_key_scope on id = api_key_id';
    const version = await target.pool.query('select keys_version from service');
    return [(await target.pool.query(keys)).rows, version.rows];
  };
  const before = await ofKeys();
  await importArchive(target.client, { folder });
  t.same(await ofKeys(), before);
  const { request, key } = await serviceOn(t, target);
  t.equal((await request({ method: 'GET', url: '/v3/prices/nickel/filters' })).status, 200);
  t.ok(key);
});
