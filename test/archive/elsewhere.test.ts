import { readFile } from 'node:fs/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { commit, putPoints } from '../support/prices/sample-writes.ts';
import { exported } from './support.ts';

const PAGE = new URL('../../docs/export.md', import.meta.url);

/** The rows of each SELECT that the page has, in PostgreSQL, as the texts that DuckDB shows. */
const EXPECTED = [
  `select p.code, s.date::text, s.low::numeric(25, 10)::text, s.mid::numeric(25, 10)::text,
      s.high::numeric(25, 10)::text, to_char(published_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI')
    from series s join price p on p.id = s.price_id where p.code = 'CP-NI-0001' order by s.date`,
  `select price_id::text, date::text, mid::numeric(25, 10)::text from series_at(2)`,
  `select code, specification->0->>'name' from price`,
];

t.test('DuckDB reads exact decimals by the statements of the page', async (t) => {
  const original = await testDatabase(t, { seeded: true });
  const awkward = ['0.1234567891', '12345.1234567891', '99999.9999999999'] as const;
  await commit(original.pool, (client) =>
    putPoints(client, 'CP-NI-0001', ['2026-06-30', ...awkward], ['2026-06-29', null, '0.3', null]),
  );
  const folder = await exported(t, original.client);
  const [, sql = ''] = /```sql\n(create macro.*?)```/s.exec(await readFile(PAGE, 'utf8')) ?? [];
  const [macro = '', ...selects] = sql.replaceAll("'archive/", `'${folder}/`).split(/;\s+/);
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  t.teardown(() => connection.closeSync());
  await connection.run(macro);
  const textsOf = async (select: string): Promise<string[]> => {
    const rows = (await connection.runAndReadAll(select)).getRows();
    return rows.map((row) => row.join('|').replace(/:00\+00$/, ''));
  };
  t.equal(selects.filter((each) => each !== '').length, EXPECTED.length);
  for (const [at, query] of EXPECTED.entries()) {
    const found = await textsOf(selects[at] ?? '');
    const { rows } = await original.pool.query({ text: query, rowMode: 'array' });
    t.ok(rows.length > 20);
    const expected = rows.map((row: unknown[]) => row.join('|'));
    t.equal(found.sort().join('\n'), expected.sort().join('\n'), `statement ${at + 1}`);
  }
});
