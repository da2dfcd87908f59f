import { createHash } from 'node:crypto';
import t from 'tap';
import { describePrices, loadingDatabase, loadText } from '../support/loading.ts';
import { loadTable, mappingFrom } from './support.ts';

const MAPPING = `
code: { constant: A }
date: { column: Date }
mid: One
`;
const TEXT = 'Date,One,Two\n2026-01-08,1,2\n';

t.test('a file with another mapping is another load; with the same one it is not', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  const other = MAPPING.replace('One', 'Two').replace('A', 'B');
  const first = await loadTable(t, client, MAPPING, TEXT);
  t.match(await loadTable(t, client, MAPPING, TEXT), {
    status: 'already-loaded',
    batch: first.batch,
  });
  const second = await loadTable(t, client, other, TEXT);
  t.match(second, { status: 'applied', counts: { inserted: 1 } });
  t.match(await loadTable(t, client, `${MAPPING}# a comment`, TEXT), { status: 'unchanged' });
  t.match(await loadTable(t, client, other, TEXT), {
    status: 'already-loaded',
    batch: second.batch,
  });
  const { rows } = await pool.query(
    `select mapping_sha256, encode(sha256, 'hex') as file from load_batch
      where format = 'table' order by id limit 2`,
  );
  const file = createHash('sha256').update(TEXT).digest('hex');
  t.strictSame(rows, [
    { mapping_sha256: mappingFrom(MAPPING).sha256, file },
    { mapping_sha256: mappingFrom(other).sha256, file },
  ]);
});

t.test('a file of another format has no mapping, and is loaded once as before', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const text = 'code,date,mid\nA,2026-01-08,1\n';
  await loadText(t, client, 'csv', text);
  t.match(await loadText(t, client, 'csv', text), { status: 'already-loaded' });
  const { rows } = await pool.query(
    `select count(*)::integer as n from load_batch where mapping_sha256 is null and format = 'csv'`,
  );
  t.strictSame(rows, [{ n: 1 }]);
  await t.rejects(
    pool.query(`insert into load_batch (format, file_name, sha256, actor, status, started_at,
        finished_at, rows)
      select format, file_name, sha256, actor, status, started_at, finished_at, 0
      from load_batch where format = 'csv'`),
    /load_batch_once/,
  );
});

t.test('a table of an older edition never overwrites one of a newer edition', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  await loadTable(t, client, MAPPING, TEXT, { vintage: '2026-03-01' });
  const older = await loadText(t, client, 'csv', 'code,date,mid\nA,2026-01-08,9\n', {
    vintage: '2026-02-01',
    allowCorrections: true,
    reason: 'an older file',
  });
  t.match(older, { status: 'unchanged', counts: { outdated: 1 } });
});
