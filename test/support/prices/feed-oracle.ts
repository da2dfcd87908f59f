import type pg from 'pg';
import { parseExact } from './oracle.ts';

/** A change as in an answer; numbers are the text that was sent. */
export interface WireChange {
  readonly seq: string;
  readonly recordedAt: string;
  readonly operation: string;
  readonly market: string;
  readonly code: string;
  readonly date: string | null;
  readonly revision: string;
  readonly before: ChangedValues | null;
  readonly after: ChangedValues | null;
}

type ChangedValues = Readonly<Record<string, string | null>>;

/** A change without its feed position, as computed from past revisions. */
export type FeedChange = Omit<WireChange, 'seq'>;

/** The changes of an NDJSON body. */
export const changesOf = (body: string): WireChange[] =>
  body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => parseExact(line));

/** Removes the feed position of a change; values of a price are reduced to its name. */
export function withoutSeq({ seq: _seq, before, after, ...rest }: WireChange): FeedChange {
  const part = (state: ChangedValues | null): ChangedValues | null =>
    state && rest.date === null ? { name: state['name'] ?? null } : state;
  return { ...rest, before: part(before), after: part(after) };
}

interface FeedRow {
  readonly price: number;
  readonly market: string;
  readonly code: string;
  readonly date: string | null;
  readonly revision: string;
  readonly value: ChangedValues;
}

const INSTANT = `'YYYY-MM-DD"T"HH24:MI:SS'`;

/** All prices and points at a revision, by `price_at` and `series_at`. */
const SNAPSHOT = `
  select p.id as price, m.slug as market, p.code, null as date, p.revision,
      jsonb_build_object('name', p.name) as value
    from price_at($1) p join market m on m.id = p.market_id
  union all
  select p.id, m.slug, p.code, s.date::text, s.revision, jsonb_build_object('low', s.low::text,
      'mid', s.mid::text, 'high', s.high::text, 'corrections', s.corrections::text,
      'publishedAt', to_char(s.published_at at time zone 'UTC', ${INSTANT}) || 'Z')
    from series_at($1) s join price_at($1) p on p.id = s.price_id
      join market m on m.id = p.market_id`;

const keyOf = ({ price, date }: FeedRow): string =>
  `${String(price).padStart(9, '0')} ${date ?? ''}`;

function operationOf(was: FeedRow | undefined, is: FeedRow | undefined): string {
  const isPrice = (is ?? was)?.date === null;
  if (!is) return 'withdrawn';
  if (was) return isPrice ? 'price-changed' : 'corrected';
  return isPrice ? 'price-added' : 'published';
}

/**
 * The changes of each revision, computed as the difference of the snapshots before and after it;
 * change numbers are not used.
 */
export async function pastOf(pool: pg.Pool): Promise<FeedChange[]> {
  const { rows: revisions } = await pool.query(`
    select number, revision_text(number) as text,
      to_char(committed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
    from revision order by number`);
  const past: FeedChange[] = [];
  let before = new Map<string, FeedRow>();
  for (const { number, text, at } of revisions) {
    const { rows } = await pool.query<FeedRow>(SNAPSHOT, [number]);
    const after = new Map(rows.map((each) => [keyOf(each), each]));
    for (const key of [...new Set([...before.keys(), ...after.keys()])].sort()) {
      const was = before.get(key);
      const is = after.get(key);
      const row = is ?? was;
      if (!row || (is && is.revision !== number)) continue;
      past.push({
        recordedAt: `${at.replace(/\.?0+$/, '')}Z`,
        operation: operationOf(was, is),
        market: row.market,
        code: row.code,
        date: row.date,
        revision: text,
        before: was?.value ?? null,
        after: is?.value ?? null,
      });
    }
    before = after;
  }
  return past;
}
