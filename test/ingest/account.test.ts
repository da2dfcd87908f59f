import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { openClient } from '../../src/db/client.ts';
import { CORRECTING, fixture, loadFile, loadingDatabase, loadText } from './support.ts';
import { n, pinkSheet } from './workbook.ts';

/** The statements that `docs/database.md` gives for the account of the loader. */
async function grants(name: string): Promise<string> {
  const page = await readFile(new URL('../../docs/database.md', import.meta.url), 'utf8');
  const statements = page.match(/(create role|grant)[^;]* prices_loader\b[^;]*;/g) ?? [];
  return statements.join('\n').replaceAll('prices_loader', name);
}

t.test('the documented account of the loader may do all that loads do, and no more', async (t) => {
  const { url, pool } = await loadingDatabase(t);
  const name = `prices_loader_${randomBytes(4).toString('hex')}`;
  const password = randomBytes(8).toString('hex');
  await pool.query((await grants(name)).replace("'…'", `'${password}'`));
  const address = new URL(url);
  address.username = name;
  address.password = password;
  const client = openClient({
    url: address.href,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'loader',
  });
  t.teardown(async () => {
    await client.close();
    await pool.query(`drop owned by ${name}; drop role ${name}`);
  });
  const rows = [['2020M01', null, n('100'), null, n('200'), n('300')]];
  const reports = [
    await loadText(t, client, 'worldbank', pinkSheet({ rows })),
    await loadFile(client, 'ecb', fixture('ecb-hist.csv')),
    await loadFile(client, 'csv', fixture('prices.csv')),
    await loadFile(client, 'ndjson', fixture('prices.ndjson')),
    await loadText(t, client, 'csv', 'code,date,mid,name\nXX-NI-1,2026-01-01,1,New\n', CORRECTING),
    await loadText(t, client, 'csv', 'code,date,mid\nXX-NI-1,2026-01-01,2\n'),
  ];
  t.strictSame(
    reports.map(({ status }) => status),
    ['applied', 'applied', 'applied', 'applied', 'applied', 'refused'],
  );
  await t.rejects(client.pool.query('delete from series'), /permission denied/);
  await t.rejects(client.pool.query('select digest from api_key; delete from api_key'), /denied/);
});
