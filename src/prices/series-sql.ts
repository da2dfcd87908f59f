import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { SeriesSource } from './columns.ts';
import { columnsOf } from './copy-binary.ts';

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** COPY takes no parameters: what is written into its text is checked here once more. */
function literal(text: string, pattern: RegExp): string {
  if (!pattern.test(text)) throw new Error('not a literal of the expected form');
  return text;
}

/** The statement that reads the series of some prices at a revision. */
export function seriesStatement(
  priceIds: readonly number[],
  range: { readonly from: string | null; readonly to: string | null },
  revision: string,
): string {
  const ids = priceIds.map((id) => literal(String(id), /^\d+$/)).join(',');
  const bounds = [
    range.from === null ? '' : ` and date >= '${literal(range.from, DAY)}'`,
    range.to === null ? '' : ` and date <= '${literal(range.to, DAY)}'`,
  ].join('');
  return `copy (select price_id, date, low, mid, high, published_at, corrections
    from series_at(${literal(revision, /^\d+$/)}) where price_id = any('{${ids}}')${bounds}
    order by price_id, date) to stdout (format binary)`;
}

/** Reads series by COPY BINARY, one short statement for each call; nothing stays open after it. */
export function sqlSeries(pool: pg.Pool): SeriesSource {
  return async (priceIds, range, revision, signal) => {
    signal.throwIfAborted();
    const client = await pool.connect();
    // A reader who left while this waited gets no statement; the connection is as good as before.
    if (signal.aborted) client.release();
    signal.throwIfAborted();
    let failure: Error | undefined;
    try {
      const stream = client.query(copyTo(seriesStatement(priceIds, range, revision)));
      const abort = () => stream.destroy(new Error('the reader is gone'));
      signal.addEventListener('abort', abort, { once: true });
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of stream) chunks.push(chunk as Buffer);
      } finally {
        signal.removeEventListener('abort', abort);
      }
      return columnsOf(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      throw failure;
    } finally {
      // A connection that failed midway may hold half an answer: it must not be used again.
      client.release(failure);
    }
  };
}
