import { Kysely, PostgresDialect } from 'kysely';
import type pg from 'pg';
import type { Database } from '../../../src/db/schema.ts';

interface PlanNode {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Rows of a table that a plan has scanned, also those that it filtered out. */
function rowsScanned(node: PlanNode, table: string): number {
  const isOwn = node['Relation Name'] === table;
  const rows = isOwn ? node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) : 0;
  const below = (node.Plans ?? []).map((each) => rowsScanned(each, table));
  // The plan shows the mean of all loops, rounded.
  const own = Math.round(rows * node['Actual Loops']);
  return below.reduce((sum, each) => sum + each, own);
}

/** Scanned rows by table. */
type Scanned<Table extends string> = Readonly<Record<Table, number>>;

/** A database whose statements are explained. `scannedIn` works for one call at a time. */
export function explainedReads(pool: pg.Pool) {
  const statements: { sql: string; parameters: unknown[] }[] = [];
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => {
      statements.push({ sql: query.sql, parameters: [...query.parameters] });
    },
  });
  /** Counts the rows of tables that the statements of some work scan. */
  const scannedIn = async <T, Table extends string>(
    tables: readonly Table[],
    work: () => Promise<T>,
  ): Promise<{ result: T; scanned: Scanned<Table> }> => {
    statements.length = 0;
    const result = await work();
    const counts = new Map<Table, number>(tables.map((table) => [table, 0]));
    for (const { sql, parameters } of statements) {
      const explained = await pool.query(`explain (analyze, format json) ${sql}`, parameters);
      const [{ Plan }] = explained.rows[0]['QUERY PLAN'];
      for (const [table, rows] of counts) counts.set(table, rows + rowsScanned(Plan, table));
    }
    return { result, scanned: Object.fromEntries(counts) as Scanned<Table> };
  };
  return { db, scannedIn };
}
