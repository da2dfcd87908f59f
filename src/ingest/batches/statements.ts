import { type RawBuilder, sql } from 'kysely';

/** Numbers on the left were there before a revision, those on the right after it. */
const BOTH = sql`
  was.low as was_low, was.mid as was_mid, was.high as was_high,
  became.low as is_low, became.mid as is_mid, became.high as is_high`;

/** What a revision wrote of a table, also what was superseded since. */
const written = (table: string, columns: RawBuilder<unknown>, revision: string) => sql`
  select ${columns} from ${sql.ref(table)} t where t.revision = ${revision}::bigint
  union all
  select ${columns} from ${sql.ref(`${table}_history`)} t where t.revision = ${revision}::bigint`;

/** What it superseded. */
const ended = (table: string, columns: RawBuilder<unknown>, revision: string) => sql`
  select ${columns} from ${sql.ref(`${table}_history`)} t
  where t.revision_to = ${revision}::bigint`;

/** Rows of the reference data: kind and name before and after a revision. */
interface NameRow {
  readonly kind: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** The names that a revision added, changed or removed. */
export const namesIn = (revision: string): RawBuilder<NameRow> => {
  const part = (table: string, name: string, kind: RawBuilder<unknown>) => {
    const columns = sql`t.id, ${sql.ref(`t.${name}`)} as name, ${kind} as kind`;
    return sql`
      select coalesce(became.kind, was.kind) as kind, was.name as before, became.name as after
      from (${written(table, columns, revision)}) as became
        full join (${ended(table, columns, revision)}) as was using (id)`;
  };
  return sql<NameRow>`
    select * from (
      ${part('currency', 'iso', sql`'currency'`)}
      union all ${part('product', 'name', sql`'product'`)}
      union all ${part('dimension_value', 'name', sql`t.kind`)}) as names
    order by kind, coalesce(after, before) collate "C"`;
};

/** A row of the table of prices, whole, before and after a revision. */
export interface PriceRow {
  readonly code: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

/** The prices that a revision added, changed or removed. */
export const pricesIn = (revision: string): RawBuilder<PriceRow> => {
  const columns = sql`t.id, t.code, to_jsonb(t) as row`;
  return sql<PriceRow>`
    select coalesce(became.code, was.code) as code, was.row as before, became.row as after
    from (${written('price', columns, revision)}) as became
      full join (${ended('price', columns, revision)}) as was using (id)
    order by coalesce(became.code, was.code) collate "C"`;
};

/** Low, mid and high before and after a revision; no mid is no value. */
export interface ValueRow {
  readonly code: string;
  /** The source of a rate. */
  readonly source: string | null;
  readonly date: string;
  readonly was_low: string | null;
  readonly was_mid: string | null;
  readonly was_high: string | null;
  readonly is_low: string | null;
  readonly is_mid: string | null;
  readonly is_high: string | null;
}

/** The points that a revision changed: each price tells between which days they lie. */
export const pointsIn = (revision: string): RawBuilder<ValueRow> => {
  const within = sql`s.price_id = g.price_id and s.date between g.first_date and g.last_date`;
  const columns = sql`s.date, s.low, s.mid, s.high`;
  return sql<ValueRow>`
    select p.code, null as source, c.*
    from change_segment g
      cross join lateral (select code from price where id = g.price_id
        union all select code from price_history where id = g.price_id limit 1) as p
      cross join lateral (
        select date, ${BOTH}
        from (
          select ${columns} from series s where ${within} and s.revision = g.revision
          union all
          select ${columns} from series_history s where ${within} and s.revision = g.revision
        ) as became
        full join (
          select ${columns} from series_history s where ${within} and s.revision_to = g.revision
        ) as was using (date)
        order by date) as c
    where g.revision = ${revision}::bigint and g.points > 0
    order by p.code collate "C", c.date`;
};

/** The exchange rates that a revision changed. */
export const ratesIn = (revision: string): RawBuilder<ValueRow> => {
  const columns = sql`t.source, t.currency_id, t.date,
    null::numeric as low, t.rate as mid, null::numeric as high`;
  return sql<ValueRow>`
    select coalesce(c.iso, (select h.iso from currency_history h where h.id = currency_id limit 1))
        as code, source, date, ${BOTH}
    from (${written('fx_rate', columns, revision)}) as became
      full join (${ended('fx_rate', columns, revision)}) as was using (source, currency_id, date)
      left join currency c on c.id = currency_id
    order by source, code, date`;
};
