import { type Kysely, sql } from 'kysely';

/*
 * The market of each segment, so that a reader of a few markets finds the next changes of these
 * without passing over those of all others.
 */
const MARKET = `
-- Readers go on; a writer waits, so that no segment falls between the rows below and the trigger.
select lock_revisions();

alter table change_segment add column market_id smallint references market (id);
alter table change_segment disable trigger change_segment_frozen;
update change_segment s set market_id = coalesce(
  (select p.market_id from price p where p.id = s.price_id),
  (select h.market_id from price_history h where h.id = s.price_id limit 1));
alter table change_segment enable trigger change_segment_frozen;
alter table change_segment alter column market_id set not null;
create index change_segment_market on change_segment (market_id, first_seq);

create function set_market_of_segment() returns trigger language plpgsql as $$
begin
  new.market_id := coalesce(
    (select p.market_id from price p where p.id = new.price_id),
    (select h.market_id from price_history h where h.id = new.price_id limit 1),
    -- A price that came and goes in one revision is in neither, but has its segment already.
    (select s.market_id from change_segment s
      where s.revision = new.revision and s.price_id = new.price_id));
  return new;
end $$;
create trigger change_segment_market before insert on change_segment
  for each row execute function set_market_of_segment();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(MARKET).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`drop trigger change_segment_market on change_segment;
      drop function set_market_of_segment();
      drop index change_segment_market;
      alter table change_segment drop column market_id`)
    .execute(db);
}
