import { type Kysely, sql } from 'kysely';

const VERSIONED = [
  'currency',
  'unit_of_measure',
  'dimension_value',
  'product',
  'price',
  'series',
  'fx_rate',
];

/*
 * What these write, nobody writes by hand: they run with the rights of the owner of the tables,
 * so that the account of the loader needs no right at all on history, revisions and the feed.
 */
const AS_OWNER = [
  'open_revision(text)',
  'seal_revision()',
  'number_changes(bigint)',
  ...VERSIONED.flatMap((table) => [`${table}_keep()`, `${table}_touch()`]),
];

/** These look something up; a temporary table of the same name must not stand in for the real. */
const LOOKING = [
  'check_revision()',
  'check_dimension_kinds()',
  'series_price_exists()',
  'refuse_loss_of_points()',
  'revision_as_of(timestamptz)',
];

/** The temporary schema comes last, where it would else come first. */
const PATH = 'search_path = pg_catalog, public, pg_temp';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const each of AS_OWNER) {
    await sql.raw(`alter function ${each} security definer set ${PATH}`).execute(db);
    // Whoever may use it in a trigger of a table of his own could write with the owner's rights.
    await sql.raw(`revoke execute on function ${each} from public`).execute(db);
  }
  for (const each of LOOKING) await sql.raw(`alter function ${each} set ${PATH}`).execute(db);
  await sql
    .raw(
      `alter table api_key add column last_used_at timestamptz;
comment on column api_key.last_used_at is 'When the key was last used, to the minute; written by an account of its own.';`,
    )
    .execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql`alter table api_key drop column last_used_at`.execute(db);
  for (const each of LOOKING) {
    await sql.raw(`alter function ${each} reset search_path`).execute(db);
  }
  for (const each of AS_OWNER) {
    await sql.raw(`alter function ${each} security invoker reset search_path`).execute(db);
    await sql.raw(`grant execute on function ${each} to public`).execute(db);
  }
}
