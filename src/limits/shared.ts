import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { momentMs } from './bucket.ts';
import type { Counted, Limits } from './limits.ts';

const PERIOD_MS = 1_000;
/** Longer than a row stays that nobody writes: what is remembered of it outlives it. */
const REMEMBERED_MS = 30 * 60_000;

const WRITE = `
insert into rate_usage as usage (instance, name, taken)
  select $1, name, taken from unnest($2::text[], $3::bigint[]) as t (name, taken)
on conflict (instance, name) do update
  set taken = usage.taken + excluded.taken, updated_at = clock_timestamp()`;

/** How far back a turn looks beyond the one before it, for clocks and transactions that lag. */
const MARGIN_S = 15;
/** The first one looks at every row: whatever stands there was counted before. */
const EVER_S = 1e9;

const READ = `
select instance, name, taken, updated_at > clock_timestamp() - interval '${MARGIN_S} s' as is_new
  from rate_usage
  where instance <> $1
    and updated_at > clock_timestamp() - interval '1 second' * $2::double precision`;

/** The name of a row by which an instance tells that it is there, also while nobody asks it. */
const PRESENT = '';
/** How often it tells, in turns: it is believed for as long as a row is new. */
const PRESENT_TURNS = 5;

/** A row that nobody wrote for so long is of an instance that is gone, or of a quiet client. */
const FORGET = "delete from rate_usage where updated_at < clock_timestamp() - interval '5 minutes'";

interface UsageRow {
  readonly instance: string;
  readonly name: string;
  readonly taken: string;
  readonly is_new: boolean;
}

/** Names of both kinds of buckets in one column. */
const PRINCIPAL = 'p ';
const NETWORK = 'n ';

/** A principal in the table: its rate stands before its name, as no other instance can know it. */
const toldAs = ({ perMinute, name }: Counted): string => `${PRINCIPAL}${perMinute} ${name}`;

/** What was told; a rate of NaN, by which nothing is counted, where none stands before the name. */
function toldOf(text: string, count: number): Counted {
  const [perMinute = '', ...name] = text.slice(PRINCIPAL.length).split(' ');
  return { name: name.join(' '), count, perMinute: Number(perMinute) };
}

/**
 * Exchanges counts with the other instances once a second, through a table without a log, so that
 * limits hold together within about one second of traffic. No request waits for it, and while it
 * fails each instance holds its limits by itself.
 */
export class Exchange {
  readonly #instance = randomUUID();
  readonly #pool: pg.Pool;
  readonly #limits: Limits;
  readonly #onChange: (error: Error | null) => void;
  /** What each other instance had counted when it was last read. */
  readonly #seen = new Map<string, { readonly total: number; readonly atMs: number }>();
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;
  /** When the others were last read; null before the first time. */
  #readMs: number | null = null;
  #hasFailed = false;
  #turns = 0;
  #failures = 0;

  /** @param onChange called with the first failure of a row of them, with null when it is over */
  constructor(pool: pg.Pool, limits: Limits, onChange: (error: Error | null) => void) {
    this.#pool = pool;
    this.#limits = limits;
    this.#onChange = onChange;
    this.#timer = setInterval(() => this.#go(), PERIOD_MS);
    this.#timer.unref();
    // At once: who else is there is known before the first requests come.
    this.#go();
  }

  /** Turns that failed. */
  get failures(): number {
    return this.#failures;
  }

  /** Tells the last counts and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    await this.#write().catch(() => {});
  }

  #go(): void {
    this.#running ??= this.#turn().finally(() => {
      this.#running = null;
    });
  }

  async #turn(): Promise<void> {
    try {
      await this.#write();
      await this.#read();
      this.#turns += 1;
      if (this.#turns % 60 === 0) await this.#forget();
      if (this.#hasFailed) this.#onChange(null);
      this.#hasFailed = false;
    } catch (error) {
      this.#failures += 1;
      if (!this.#hasFailed) this.#onChange(error as Error);
      this.#hasFailed = true;
    }
    this.#limits.sweep(momentMs());
  }

  async #write(): Promise<void> {
    const { principals, failures } = this.#limits.drain();
    const rows = [
      ...principals.map((each) => [toldAs(each), each.count] as const),
      ...[...failures].map(([name, taken]) => [NETWORK + name, taken] as const),
    ];
    if (this.#turns % PRESENT_TURNS === 0) rows.push([PRESENT, 0]);
    if (rows.length === 0) return;
    const names = rows.map(([name]) => name);
    const taken = rows.map(([, count]) => count);
    await this.#pool.query(WRITE, [this.#instance, names, taken]);
  }

  async #read(): Promise<void> {
    const nowMs = momentMs();
    const sinceMs = this.#readMs;
    const seconds = sinceMs === null ? EVER_S : MARGIN_S + Math.max(0, nowMs - sinceMs) / 1000;
    const { rows } = await this.#pool.query<UsageRow>(READ, [this.#instance, seconds]);
    this.#limits.meet(rows.filter(({ name, is_new }) => name === PRESENT && is_new).length);
    for (const row of rows) this.#count(row, sinceMs, nowMs);
    this.#readMs = nowMs;
  }

  #count({ instance, name, taken }: UsageRow, sinceMs: number | null, nowMs: number): void {
    const key = `${instance} ${name}`;
    const total = Number(taken);
    const before = this.#seen.get(key)?.total ?? 0;
    this.#seen.set(key, { total, atMs: nowMs });
    // What was counted before this instance came is in the past; a row begun anew counts whole.
    const more = total >= before ? total - before : total;
    if (sinceMs === null || more === 0) return;
    if (name.startsWith(PRINCIPAL)) this.#limits.principalsElsewhere(toldOf(name, more), sinceMs);
    else this.#limits.failuresElsewhere(name.slice(NETWORK.length), more, sinceMs);
  }

  async #forget(): Promise<void> {
    await this.#pool.query(FORGET);
    const oldest = momentMs() - REMEMBERED_MS;
    for (const [key, { atMs }] of this.#seen) if (atMs < oldest) this.#seen.delete(key);
  }
}
