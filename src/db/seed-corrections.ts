import { sql, type Transaction } from 'kysely';
import { openRevision } from './connection.ts';
import type { Database } from './schema.ts';
import {
  digestOf,
  finishBatch,
  isSamplePrice,
  LINES,
  recordBatch,
  wasLoaded,
} from './seed-batch.ts';
import type { SampleSeries } from './seed-sample.ts';

const REASON = 'sample corrections: points that were first published wrong';

/** Points as they were published first, with what corrects them; texts are exact decimals. */
const correctionsOf = (series: readonly SampleSeries[]) =>
  series.flatMap(({ code, points }) =>
    points.flatMap(({ corrected, ...wrong }) =>
      corrected ? [{ code, date: wrong.date, wrong: wrong.mid, ...corrected }] : [],
    ),
  );

/**
 * Corrects the few sample points that the seeds publish wrong at first, in a revision of their
 * own, and returns how many. A point that anybody else has corrected or changed stays.
 */
export async function writeCorrections(
  trx: Transaction<Database>,
  series: readonly SampleSeries[],
): Promise<number> {
  const corrections = correctionsOf(series);
  const text = JSON.stringify(corrections);
  const sha256 = digestOf([text]);
  if (await wasLoaded(trx, sha256)) return 0;
  const wanted = sql`
    jsonb_to_recordset(${text}::jsonb) as n (code text, date date, wrong numeric, low numeric,
      mid numeric, high numeric, "correctedAt" timestamptz)
    join price p on p.code = n.code and ${isSamplePrice}`;
  const { rows: open } = await sql<{ price_id: number; date: string }>`
    select s.price_id, s.date from ${wanted}
    join series s on s.price_id = p.id and s.date = n.date
    where s.corrections = 0 and s.mid = n.wrong`.execute(trx);
  // With nothing to correct the line is written all the same: it says that this step is done.
  if (open.length > 0) await openRevision(trx, `seeds: ${REASON}`);
  const batch = await recordBatch(trx, {
    file_name: LINES.corrections,
    sha256,
    reason: REASON,
    prices_added: 0,
    rows: corrections.length,
    inserted: 0,
    unchanged: 0,
    corrected: open.length,
    outdated: corrections.length - open.length,
  });
  await sql`
    update series s set low = n.low, mid = n.mid, high = n.high, published_at = n."correctedAt",
      corrections = s.corrections + 1, batch_id = ${batch}::integer
    from ${wanted}
    where s.price_id = p.id and s.date = n.date and s.corrections = 0 and s.mid = n.wrong
  `.execute(trx);
  await finishBatch(trx, batch);
  return open.length;
}
