import { randomBytes } from 'node:crypto';
import { type Client, openClient } from '../../../src/db/client.ts';
import { migrateUp } from '../../../src/db/migrate/migrate.ts';
import { seed } from '../../../src/db/seed/seed.ts';
import { administer, siblingUrl } from '../database/database.ts';

async function withClient(url: string, work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'commodity-prices test setup',
  });
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

/** Refuses revisions, so that no test changes the prices that others read. */
const READ_ONLY = `
create function public.refuse_revision() returns trigger language plpgsql as $$
begin
  raise exception 'All tests share this database. Write to testDatabase(t, { seeded: true }).';
end $$;
create trigger refuse_revision before insert on public.revision
  for each statement execute function public.refuse_revision()`;

/**
 * Makes the databases that tests copy or share, once for a run: `<prefix>_empty`,
 * `<prefix>_seeded` and `<prefix>_read`. Returns the prefix.
 */
export async function makeTemplates(url: string): Promise<string> {
  const prefix = `prices_test_${randomBytes(4).toString('hex')}`;
  await administer(url, `create database "${prefix}_empty"`);
  await withClient(siblingUrl(url, `${prefix}_empty`), (client) => migrateUp(client.db));
  await administer(url, `create database "${prefix}_seeded" template "${prefix}_empty"`);
  await withClient(siblingUrl(url, `${prefix}_seeded`), (client) => seed(client));
  await administer(url, `create database "${prefix}_read" template "${prefix}_seeded"`);
  await withClient(siblingUrl(url, `${prefix}_read`), ({ pool }) => pool.query(READ_ONLY));
  return prefix;
}

/** Removes all databases of a run, including those of crashed tests. */
export async function dropDatabases(url: string, prefix: string): Promise<void> {
  const { default: pg } = await import('pg');
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    const { rows } = await admin.query<{ datname: string }>(
      'select datname from pg_database where starts_with(datname, $1)',
      [`${prefix}_`],
    );
    await administer(url, ...rows.map(({ datname }) => `drop database "${datname}" with (force)`));
  } finally {
    await admin.end();
  }
}
