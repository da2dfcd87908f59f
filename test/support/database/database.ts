import { randomBytes } from 'node:crypto';
import type { Kysely } from 'kysely';
import pg from 'pg';
import type t from 'tap';
import { type Client, openClient } from '../../../src/db/client.ts';
import type { Database } from '../../../src/db/schema.ts';

/** A test database and its handles. */
export interface TestDatabase {
  readonly url: string;
  readonly db: Kysely<Database>;
  readonly pool: pg.Pool;
  /** The same handles as the service gets them. */
  readonly client: Client;
}

type Test = Pick<typeof t, 'teardown'>;

/** Reads an environment variable that `test/run.ts` sets for the test files. */
export const setting = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests with node test/run.ts [file]`);
  return value;
};

/** The URL of another database on the same server. */
export function siblingUrl(url: string, database: string): string {
  const sibling = new URL(url);
  sibling.pathname = `/${database}`;
  return sibling.href;
}

const OBJECT_IN_USE = '55006';

/** Runs a statement; retries while sessions end (PostgreSQL itself waits 5 s for them). */
async function runWithRetries(client: pg.Client, statement: string, attempts = 24): Promise<void> {
  try {
    await client.query(statement);
  } catch (error) {
    if (attempts === 1 || (error as { code?: unknown }).code !== OBJECT_IN_USE) throw error;
    await runWithRetries(client, statement, attempts - 1);
  }
}

/** Runs statements on the server's own database, outside a transaction, one after another. */
export async function administer(url: string, ...statements: string[]): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    for (const statement of statements) await runWithRetries(admin, statement);
  } finally {
    await admin.end();
  }
}

/** Drops all objects of the schema `public`, as in a database that was never migrated. */
export const dropSchema = ({ pool }: Pick<TestDatabase, 'pool'>): Promise<unknown> =>
  pool.query(
    'drop schema public cascade; drop schema if exists published cascade; create schema public',
  );

/** The session setting of the service role: a statement ends with its connection. */
const SESSION = '-c client_connection_check_interval=200';

/** An address whose sessions have the settings of the role of the service. */
function addressWith(url: string): string {
  const address = new URL(url);
  address.searchParams.set('options', SESSION);
  return address.href;
}

const clientOf = (url: string): Client =>
  openClient({
    url: addressWith(url),
    connectionsMax: 8,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'commodity-prices test',
  });

/**
 * A private database that the test may write to: a copy of the migrated, empty one, or with
 * `seeded` of the seeded one. The teardown drops it.
 */
export async function testDatabase(
  test: Test,
  options: { readonly seeded?: boolean } = {},
): Promise<TestDatabase> {
  const admin = setting('TEST_DATABASE_URL');
  const prefix = setting('TEST_DATABASE_PREFIX');
  const name = `${prefix}_${randomBytes(5).toString('hex')}`;
  const template = `${prefix}_${options.seeded ? 'seeded' : 'empty'}`;
  // A copy of files costs half the CPU of writing 27 MB to the log; a checkpoint costs little here.
  const strategy = options.seeded ? 'file_copy' : 'wal_log';
  await administer(admin, `create database "${name}" template "${template}" strategy ${strategy}`);
  const url = siblingUrl(admin, name);
  const client = clientOf(url);
  test.teardown(async () => {
    await client.close();
    await administer(admin, `drop database if exists "${name}" with (force)`);
  });
  return { url, db: client.db, pool: client.pool, client };
}

/**
 * The seeded database that all test files share. Its data are read-only; tests may add API keys.
 */
export async function seededDatabase(test: Test): Promise<TestDatabase> {
  const url = siblingUrl(setting('TEST_DATABASE_URL'), `${setting('TEST_DATABASE_PREFIX')}_read`);
  const client = clientOf(url);
  test.teardown(() => client.close());
  return { url, db: client.db, pool: client.pool, client };
}
