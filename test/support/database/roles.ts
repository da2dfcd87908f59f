import { randomBytes } from 'node:crypto';
import type t from 'tap';
import { type Client, openClient } from '../../../src/db/client.ts';
import { applyRoles, LOGINS, type Login, roleName } from '../../../src/db/migrate/roles.ts';
import { administer, setting, type TestDatabase, testDatabase } from './database.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A database of a test with its own accounts. */
export interface RoledDatabase extends TestDatabase {
  /** The prefix of its account names. */
  readonly prefix: string;
  readonly passwords: ReadonlyMap<Login, string>;
  /** The address of the database for an account. */
  urlOf(login: Login): string;
  /** A client of the database as this account. */
  as(login: Login): Client;
}

/** Replaces the account of a database URL. */
export function addressAs(url: string, account: string, password: string): string {
  const address = new URL(url);
  address.username = account;
  address.password = password;
  return address.href;
}

/** A small pool for any account. */
export function clientAs(test: Test, url: string): Client {
  const client = openClient({
    url,
    connectionsMax: 3,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'commodity-prices test',
  });
  test.teardown(() => client.close());
  return client;
}

/** A unique prefix of account names; the teardown drops the accounts after the databases. */
export function accountPrefix(test: Test): string {
  const prefix = `${setting('TEST_DATABASE_PREFIX')}_${randomBytes(4).toString('hex')}`;
  const roles = [...LOGINS, 'owner' as const].map((each) => `"${roleName(prefix, each)}"`);
  test.teardown(() =>
    administer(setting('TEST_DATABASE_URL'), `drop role if exists ${roles.join(', ')}`),
  );
  return prefix;
}

/** A private database with all accounts, each with a password. */
export async function roledDatabase(
  test: Test,
  options: { readonly seeded?: boolean } = {},
): Promise<RoledDatabase> {
  const prefix = accountPrefix(test);
  const database = await testDatabase(test, options);
  const passwords = new Map(LOGINS.map((each) => [each, randomBytes(12).toString('base64url')]));
  await applyRoles(database.db, prefix, passwords);
  const urlOf = (login: Login): string =>
    addressAs(database.url, roleName(prefix, login), passwords.get(login) ?? '');
  return { ...database, prefix, passwords, urlOf, as: (login) => clientAs(test, urlOf(login)) };
}

/** A pool configured as in the service, with timeouts for a slow machine. */
export function serviceClient(test: Test, database: RoledDatabase): Client {
  const address = new URL(database.urlOf('service'));
  // The account's default lock timeout is 1 s; a stalled lock holder may need longer.
  address.searchParams.set('options', '-c lock_timeout=20s');
  const client = openClient({
    url: address.href,
    connectionsMax: 8,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
    readOnly: true,
    applicationName: 'commodity-prices',
  });
  test.teardown(() => client.close());
  return client;
}
