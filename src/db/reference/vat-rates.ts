import { type Kysely, sql, type Transaction } from 'kysely';
import { numberIn, requireCommit } from '../revisions.ts';
import type { Database } from '../schema.ts';

/*
 * Rates of value added tax in the database: a versioned table. A file states some countries whole;
 * the others stay.
 */

type Trx = Transaction<Database>;

/** The rates of a country in percent, as decimal text, by the first day of each: `YYYY-MM-DD`. */
export type VatRatesOf = ReadonlyMap<string, string>;

/** The rates of VAT by country, by its ISO 3166 code. */
export type VatRatesByCountry = ReadonlyMap<string, VatRatesOf>;

/**
 * Reads all rates, in the order of their days.
 * @param revision the server must have its commit, see `requireCommit`; null for the current rows
 */
export async function readVatRates(
  db: Kysely<Database>,
  revision: string | null,
): Promise<VatRatesByCountry> {
  const isNow = revision === null;
  const table = isNow ? sql`vat_rate` : sql`vat_rate_at(${numberIn(revision)})`;
  const { rows } = await sql<{ country: string; from: string; rate: string }>`
    select country, valid_from as "from", trim_scale(rate)::text as rate from ${table}
    where ${isNow ? sql`true` : requireCommit(revision)}
    order by country, valid_from`.execute(db);
  const countries = Map.groupBy(rows, ({ country }) => country);
  return new Map(
    [...countries].map(([country, all]) => [
      country,
      new Map(all.map(({ from, rate }) => [from, rate])),
    ]),
  );
}

/** A rate that a file adds or changes, or the end of one. */
export interface VatChange {
  readonly country: string;
  /** The first day of the rate. */
  readonly from: string;
  /** In percent, as decimal text. */
  readonly before: string | null;
  readonly after: string | null;
}

/** The changes that a file makes in the current rates. */
interface VatChanges {
  readonly changes: readonly VatChange[];
  /** Rates of the file that the database has already. */
  readonly unchanged: number;
}

/** Compares a file with the current rates. Countries that it does not name stay. */
export function vatChanges(file: VatRatesByCountry, current: VatRatesByCountry): VatChanges {
  const all = [...file].flatMap(([country, rates]) => {
    const were = current.get(country) ?? new Map<string, string>();
    return [...new Set([...rates.keys(), ...were.keys()])].sort().map((from) => ({
      ...{ country, from },
      before: were.get(from) ?? null,
      after: rates.get(from) ?? null,
    }));
  });
  const changes = all.filter(({ before, after }) => before !== after);
  return { changes, unchanged: all.length - changes.length };
}

/** Writes changes in the open revision. @param batch the number of their batch; null for seeds */
export async function writeVatRates(
  trx: Trx,
  changes: readonly VatChange[],
  batch: number | null,
): Promise<void> {
  const text = JSON.stringify(changes);
  const changed = sql`
    jsonb_to_recordset(${text}::jsonb) as n (country text, "from" date, after numeric)`;
  await sql`
    delete from vat_rate v using ${changed}
    where v.country = n.country and v.valid_from = n."from" and n.after is null`.execute(trx);
  await sql`
    insert into vat_rate (country, valid_from, rate, batch_id)
    select n.country, n."from", n.after, ${batch}::integer from ${changed}
    where n.after is not null
    on conflict (country, valid_from) do update
      set (rate, batch_id) = row(excluded.rate, excluded.batch_id)`.execute(trx);
}

/** The countries that have rates, or had some once. */
export async function vatCountriesEver(trx: Trx): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ country: string }>`
    select country from vat_rate union select country from vat_rate_history`.execute(trx);
  return new Set(rows.map(({ country }) => country));
}
