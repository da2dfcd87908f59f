import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table key_audit validate constraint key_audit_action_check`.execute(db);
}

/** A constraint that was looked at stays so. */
export async function down(_db: Kysely<unknown>): Promise<void> {}
