import { sql } from 'kysely';
import { firstOf, type Listed, listChanges, PREVIEW_MAX } from './change-set.ts';
import { NEW_AS_A_WHOLE, NEW_BY_ITSELF } from './classify.ts';
import type { Trx } from './reference.ts';
import type { Load, LoadPreview } from './request.ts';

const listed = <T>(all: readonly T[]): Listed<T> => ({
  total: all.length,
  shown: all.slice(0, PREVIEW_MAX),
});

async function newValuesOf(trx: Trx): Promise<Omit<LoadPreview['newValues'], 'values'>> {
  const { total, shown } = await firstOf(
    trx,
    sql<{ code: string; values: string; from: string; to: string }>`
      select name as code, null::date as date, rows as values, first_date as "from",
        last_date as "to"
      from pg_temp.load_subject u
      where ${NEW_AS_A_WHOLE} and rows > 0
      union all
      select u.name, null, count(*), min(c.date), max(c.date)
      from pg_temp.load_change c join pg_temp.load_subject u using (subject)
      where ${NEW_BY_ITSELF} group by u.name`,
  );
  const counted = shown.map(({ code, from, to, ...row }) => ({
    code,
    values: Number(row.values),
    from,
    to,
  }));
  return { total, shown: counted };
}

/** Puts together what a load will do, from its plan and the staging tables. */
export async function previewOf(trx: Trx, load: Load): Promise<LoadPreview> {
  const { currencies, prices, counts } = load;
  const created = prices.created.map(({ code, attributes }) => ({
    code,
    name: attributes['name'] ?? null,
  }));
  const names = prices.newRows.map(({ record }) => ({
    kind: record.kind === 'product' ? record.kind : record.dimension,
    name: record.name,
  }));
  const again = await listChanges(trx, 'new');
  return {
    newPrices: listed(created),
    changedPrices: listed(prices.changes),
    newNames: listed(names),
    newCurrencies: currencies,
    newValues: { ...(await newValuesOf(trx)), values: counts.inserted },
    corrections: await listChanges(trx, 'changed'),
    again: {
      total: again.total,
      shown: again.shown.map(({ before: _, ...value }) => value),
    },
    unchanged: counts.unchanged,
    outdated: counts.outdated,
    rejected: counts.rejected,
  };
}
