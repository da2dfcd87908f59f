import type t from 'tap';
import { type TestDatabase, testDatabase } from './database.ts';
import { insertOf, inTransaction, type Row, writeMinimalData } from './minimal-data.ts';

/** Rows that violate one constraint each: title, row, name of the constraint. */
export type InvalidRow = readonly (readonly [title: string, row: Row, constraint: string])[];

/** Tests of rows against the constraints of a database; every transaction is rolled back. */
export function rowTests(tap: Pick<typeof t, 'test' | 'before' | 'teardown'>) {
  let database: TestDatabase;
  tap.before(async () => {
    database = await testDatabase(tap);
    await writeMinimalData(database.pool);
  });

  /** The violated constraint or the message of a trigger; null if the statements succeed. */
  const refusalOf = (...statements: readonly string[]): Promise<string | null> =>
    inTransaction(
      database.pool,
      async (client) => {
        await client.query("select open_revision('test')");
        for (const statement of statements) await client.query(statement);
        return null;
      },
      'rollback',
    ).catch((error: { constraint?: string; message: string }) => error.constraint ?? error.message);

  const refusesRows = (title: string, table: string, cases: InvalidRow) =>
    tap.test(title, async (test) => {
      for (const [name, row, constraint] of cases) {
        test.equal(await refusalOf(insertOf(table, row)), constraint, name);
      }
    });

  const acceptsRows = (title: string, table: string, cases: Readonly<Record<string, Row>>) =>
    tap.test(title, async (test) => {
      for (const [name, row] of Object.entries(cases)) {
        test.equal(await refusalOf(insertOf(table, row)), null, name);
      }
    });

  return { refusalOf, refusesRows, acceptsRows, pool: () => database.pool };
}
