import { type Kysely, sql } from 'kysely';

/* A column without a default is added in moments; the next migration fills it. */
const COLUMN = `
-- Readers go on; a writer waits, so that each revision gets its id from the default or the backfill.
select lock_revisions();

alter table revision
  add column commit_id text,
  add constraint revision_has_commit_id check (commit_id is not null and commit_id ~ '^[0-9a-z]{6}$')
    not valid;
alter table revision alter column commit_id set default new_commit_id();
comment on column revision.commit_id is
  'Names the commit: its number may come back after a failover, this does not.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(COLUMN).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table revision drop column commit_id`.execute(db);
}
