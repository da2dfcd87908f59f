import { type Kysely, sql } from 'kysely';

/** Exchange rates. */
const SCHEMA = `
create table fx_source (
  slug text primary key check (slug ~ '^[A-Z0-9]+$'),
  name text not null,
  base_currency_id smallint not null references currency (id),
  is_sample boolean not null default false
);
comment on table fx_source is 'Publishers of exchange rates, with their base currency.';

create table fx_rate (
  source text not null references fx_source (slug),
  currency_id smallint not null references currency (id),
  date date not null
    check (date between '1800-01-01' and '2199-12-31')
    check (date <= (now() at time zone 'UTC')::date + 1),
  rate numeric not null,
  batch_id integer,
  revision bigint not null default current_revision(),
  primary key (source, currency_id, date),
  constraint fx_rate_is_a_positive_number check (coalesce(scale(rate), 99) <= 10 and rate > 0),
  constraint fx_rate_is_trimmed check (scale(rate) = min_scale(rate)),
  constraint fx_rate_has_15_digits check (
    rate < ('{1e15,1e14,1e13,1e12,1e11,1e10,1e9,1e8,1e7,1e6,1e5}'::numeric[])[1 + scale(rate)])
);
comment on table fx_rate is 'Exchange rates as published: units of the currency per unit of the base currency of the source.';

-- A source has no revision, so the meaning of its rates must never change.
create trigger fx_source_is_kept before delete on fx_source
  for each row execute function refuse_change();
create trigger fx_source_no_truncate before truncate on fx_source execute function refuse_change();
create trigger fx_source_identity_is_fixed before update on fx_source for each row
  when ((old.slug, old.base_currency_id, old.is_sample)
    is distinct from (new.slug, new.base_currency_id, new.is_sample))
  execute function refuse_new_key();
create trigger fx_rate_identity_is_fixed before update of source, currency_id, date on fx_rate
  for each row
  when ((old.source, old.currency_id, old.date) is distinct from (new.source, new.currency_id, new.date))
  execute function refuse_new_key();
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(SCHEMA).execute(db);
}

export async function down(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    drop table fx_rate, fx_source;
  `)
    .execute(db);
}
