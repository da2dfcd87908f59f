import { type Kysely, sql } from 'kysely';

/** When a file counts as loaded; the same condition as before. */
const IN_FORCE = `status = 'applied' and undone_by is null and rejected = 0
    and format not in ('withdraw', 'undo')`;

const UP = `
-- Readers go on; a writer waits, so that no load falls between the old rules and the new.
select lock_revisions();

alter table load_batch add column mapping_sha256 bytea check (octet_length(mapping_sha256) = 32);
comment on column load_batch.mapping_sha256 is
  'SHA-256 of the mapping with which the file was read: with another mapping it is another load.';

drop index load_batch_once;
create unique index load_batch_once on load_batch (sha256, format, mapping_sha256)
  nulls not distinct where ${IN_FORCE};
`;

const DOWN = `
select lock_revisions();
drop index load_batch_once;
create unique index load_batch_once on load_batch (sha256, format)
  where ${IN_FORCE};
alter table load_batch drop column mapping_sha256;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(UP).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(DOWN).execute(db);
}
