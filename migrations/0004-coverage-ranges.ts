import { type Kysely, sql } from 'kysely';

/*
 * A batch may cover several ranges of one price or currency: a day on which its edition has no
 * value, between days on which it has one, is not covered. The service does not read this table,
 * so the short lock holds up loads alone.
 */
const RANGES = `
drop index load_coverage_price;
drop index load_coverage_currency;
create index load_coverage_price on load_coverage (price_id, batch_id) where price_id is not null;
create index load_coverage_currency on load_coverage (currency_id, batch_id)
  where currency_id is not null;
comment on table load_coverage is
  'Which prices and currencies a batch with a vintage held, and for which ranges of dates: an older vintage never overwrites these.';
`;

const ONE_RANGE = `
with ranges as (delete from load_coverage returning *)
  insert into load_coverage (batch_id, price_id, currency_id, first_date, last_date)
  select batch_id, price_id, currency_id, min(first_date), max(last_date) from ranges
  group by batch_id, price_id, currency_id;
drop index load_coverage_price;
drop index load_coverage_currency;
create unique index load_coverage_price on load_coverage (price_id, batch_id)
  where price_id is not null;
create unique index load_coverage_currency on load_coverage (currency_id, batch_id)
  where currency_id is not null;
comment on table load_coverage is
  'Which prices and currencies a batch with a vintage held, and for which dates: an older vintage never overwrites these.';
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(RANGES).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql.raw(ONE_RANGE).execute(db);
}
