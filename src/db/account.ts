import { type Kysely, sql } from 'kysely';
import type { Database } from './schema.ts';

/** What the account of a session may do, as far as the service is concerned. */
interface Account {
  readonly name: string;
  /** What it may do beyond reading, in words; empty for an account made for the service. */
  readonly excess: readonly string[];
  /** Tables that it cannot read. */
  readonly unreadable: readonly string[];
}

/**
 * Looks at what the account of this session may do. The service reads and does nothing else, so
 * an error in it, or somebody who broke into it, must not be able to do more.
 */
export async function accountOf(db: Kysely<Database>): Promise<Account> {
  const { rows } = await sql<{ name: string; excess: string[]; unreadable: string[] }>`
    with me as (
      select * from pg_roles where rolname = current_user
    ), tables as (
      select oid, relname, relowner from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
    ), writable as (
      select count(*) as number from tables
      where has_table_privilege(oid, 'insert, update, delete, truncate, trigger')
        or has_any_column_privilege(oid, 'insert, update')
    )
    select rolname as name,
      case when rolsuper then array['is a superuser'] else array_remove(array[
        case when rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
          then 'may make accounts or databases, replicate, or pass row security' end,
        case when exists (select from tables where pg_has_role(relowner, 'member'))
          then 'may act as the owner of the tables' end,
        case when writable.number > 0 then format('may write to %s tables', writable.number) end,
        case when has_schema_privilege('public', 'create')
            or has_database_privilege(current_database(), 'create, temporary')
          then 'may make schemas or tables' end,
        case when has_function_privilege(to_regprocedure('open_revision(text)'), 'execute')
          then 'may open revisions' end
      ], null) end as excess,
      array(select relname::text from tables
        where not has_table_privilege(oid, 'select') and relname <> 'kysely_migration_lock'
        order by relname) as unreadable
    from me, writable`.execute(db);
  const [account] = rows;
  if (!account) throw new Error('the session has no account');
  return account;
}
