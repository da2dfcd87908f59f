import { type RawBuilder, sql } from 'kysely';
import { type Correction, type Listed, PREVIEW_MAX, type Values } from '../preview.ts';
import type { Trx } from '../reference.ts';
import { pricesChangedIn, removedIn } from './stage.ts';

interface Named {
  readonly code: string;
  readonly name: string;
}

/** A value that goes, or comes back; of a rate the code is source and currency. */
interface DatedValue {
  readonly code: string;
  readonly date: string;
  readonly values: Values;
}

/** What an undo will do, told before it does it. */
export interface UndoPreview {
  readonly removedPrices: Listed<Named>;
  readonly restoredPrices: Listed<Named>;
  /** Prices whose attributes become what they were. */
  readonly changedPrices: Listed<Named>;
  /** Products, values of dimensions and currencies that nothing else uses. */
  readonly removedNames: Listed<{ readonly kind: string; readonly name: string }>;
  readonly withdrawn: Listed<DatedValue>;
  readonly corrected: Listed<Correction>;
  readonly restored: Listed<DatedValue>;
}

async function listed<T extends object>(trx: Trx, query: RawBuilder<T>): Promise<Listed<T>> {
  const { rows } = await sql<T & { total: string }>`
    select *, count(*) over () as total from (${query}) as found
    order by 1, 2 limit ${PREVIEW_MAX}`.execute(trx);
  const shown = rows.map(({ total: _, ...row }) => row as unknown as T);
  return { total: Number(rows[0]?.total ?? 0), shown };
}

/** A value before a revision, to which the undo brings it back, and the value now. */
interface UndoneValue {
  readonly code: string;
  readonly date: string;
  readonly low: string | null;
  readonly mid: string;
  readonly high: string | null;
  readonly low_now: string | null;
  readonly mid_now: string;
  readonly high_now: string | null;
}

const values = (trx: Trx, condition: RawBuilder<unknown>): Promise<Listed<UndoneValue>> =>
  listed(
    trx,
    sql<UndoneValue>`
      select coalesce(v.source || ' ' || coalesce(c.iso,
          (select iso from currency_history h where h.id = v.id limit 1)), p.code,
          (select code from price_history h where h.id = v.id limit 1)) as code,
        v.date, v.low, v.mid, v.high, v.low_now, v.mid_now, v.high_now
      from pg_temp.undo_value v
        left join price p on v.source is null and p.id = v.id
        left join currency c on v.source is not null and c.id = v.id
      where ${condition}`,
  );

const before = ({ low, mid, high }: UndoneValue): Values => ({ low, mid, high });
const now = ({ low_now, mid_now, high_now }: UndoneValue): Values => ({
  low: low_now,
  mid: mid_now,
  high: high_now,
});

/** Finds out what taking a revision back will do; its values are staged. */
export async function previewUndo(trx: Trx, revision: string): Promise<UndoPreview> {
  const gone = await values(trx, sql`v.mid is null and v.mid_now is not null`);
  const corrected = await values(trx, sql`v.mid is not null and v.mid_now is not null`);
  const restored = await values(trx, sql`v.mid is not null and v.mid_now is null`);
  const dated = ({ total, shown }: Listed<UndoneValue>, of: typeof now): Listed<DatedValue> => ({
    total,
    shown: shown.map((row) => ({ code: row.code, date: row.date, values: of(row) })),
  });
  const prices = (query: RawBuilder<unknown>) =>
    listed(trx, sql<Named>`select h.code, h.name ${query}`);
  return {
    removedPrices: await prices(
      sql`from price h where h.id in (select prices_made_in(${revision}::bigint))`,
    ),
    restoredPrices: await prices(removedIn('price', revision)),
    changedPrices: await prices(pricesChangedIn(revision)),
    removedNames: await listed(
      trx,
      sql<{ kind: string; name: string }>`
        select kind, name from names_made_in(${revision}::bigint)`,
    ),
    withdrawn: dated(gone, now),
    corrected: {
      total: corrected.total,
      shown: corrected.shown.map((row) => ({
        code: row.code,
        date: row.date,
        before: now(row),
        after: before(row),
      })),
    },
    restored: dated(restored, before),
  };
}
