import { type Kysely, sql } from 'kysely';

/** A step back that would have taken data with it. Nothing was changed. */
export class DataLossError extends Error {
  override readonly name = 'DataLossError';
}

/** What the runner of migrations writes, and writes again. */
const OURS = ['kysely_migration', 'kysely_migration_lock', 'migration_file'];
const CATALOG = ['service', 'market', 'access_scope'];

/** The columns of the tables that hold rows, as `table.column`. */
async function filledColumns(trx: Kysely<unknown>): Promise<Set<string>> {
  const { rows: columns } = await sql<{ table: string; column: string }>`
    select c.relname::text as "table", a.attname::text as "column"
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and a.attnum > 0 and not a.attisdropped
      and c.relname <> all(${[...OURS, ...CATALOG]})
    order by c.relname, a.attnum`.execute(trx);
  const filled = new Set<string>();
  for (const table of new Set(columns.map((each) => each.table))) {
    const { rows } = await sql`select from ${sql.table(table)} limit 1`.execute(trx);
    if (rows.length === 0) continue;
    for (const each of columns) {
      if (each.table === table) filled.add(`${table}.${each.column}`);
    }
  }
  return filled;
}

/**
 * Does a step back in the transaction of the caller, and fails when tables or columns of tables
 * with rows are gone after it.
 * @throws DataLossError naming them
 */
export async function withoutLoss(
  trx: Kysely<unknown>,
  name: string,
  step: () => Promise<void>,
): Promise<void> {
  const before = await filledColumns(trx);
  await step();
  const after = await filledColumns(trx);
  const lost = [...before].filter((each) => !after.has(each));
  if (lost.length === 0) return;
  const shown = lost.slice(0, 3).join(', ');
  const more = lost.length > 3 ? ` and ${lost.length - 3} more columns` : '';
  throw new DataLossError(
    `taking back ${name} would lose ${shown}${more}; nothing was changed. An older version of ` +
      'the service runs on this schema as it is',
  );
}
