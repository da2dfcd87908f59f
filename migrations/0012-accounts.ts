import { type Kysely, sql } from 'kysely';

/**
 * The account of the database beside the actor that a command names. The server fills it in, so that
 * no client can name another one. Rows from before have none. The default comes in a statement of its
 * own: it does not apply to rows that exist.
 */
const ACCOUNTS = `
alter table load_batch add column account text;
alter table load_batch alter column account set default session_user;
alter table key_audit add column account text;
alter table key_audit alter column account set default session_user;
comment on column load_batch.account is 'The account that the session logged in as; null in rows from before this column.';
comment on column key_audit.account is 'The account that the session logged in as; null in rows from before this column.';
`;

export const up = async (db: Kysely<unknown>) => void (await sql.raw(ACCOUNTS).execute(db));
